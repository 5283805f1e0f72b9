"""What is wrong with an intent, as far as the cluster's memory and settings can tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final

from trimtab.cluster.existing import Flaw
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import InvalidName, parse_bundle
from trimtab.nearby import nearby
from trimtab.policies import Isolation, Policies
from trimtab.reasons import IntentRule
from trimtab.settings import Settings, Value, contradictions
from trimtab.settings.words import BY_POSITIONS
from trimtab.state.memory import Memory
from trimtab.state.round_state import AskedSplit
from trimtab.wire.control import Intent, IntentKind

FIXED: Final = "intake."
"""The settings of operator ①, which reads no intents."""
_INTAKE: Final = tuple(FIXED + each.name for each in fields(IntakeSettings))


def intent_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    """All that is wrong with an intent; ``defaults`` are the job's settings."""
    subject = _SUBJECTS.get(intent.kind)
    if subject is not None and not getattr(intent, subject):
        yield IntentRule.NO_SUBJECT, f"{subject}: says nothing of what it is about"
    elif intent.kind is IntentKind.SETTINGS:
        yield from setting_flaws(memory.overrides, intent.settings, defaults)
    elif intent.kind is IntentKind.RESET:
        yield from reset_flaws(memory.overrides, intent.names, defaults)
    elif intent.kind is IntentKind.SPLIT:
        yield from _split_flaws(intent, defaults.with_accepted(defaults.read(memory.overrides)[0]))
        if memory.round.asked.get(intent.bundle, asked_split(intent)) != asked_split(intent):
            problem = "bundle: another split of it waits for the next round; ask again after that"
            yield IntentRule.INVALID_SPLIT, problem
    elif intent.kind in POLICIES:
        yield from _policy_flaws(memory.policies, intent)


def setting_flaws(
    overrides: Mapping[str, Value], values: Mapping[str, Value], defaults: Settings
) -> Iterator[Flaw]:
    """What is wrong with new values, which are judged together with those set before."""
    yield from _fixed(values)
    free = {name: values[name] for name in _not_fixed(values)}
    accepted, problems = defaults.read(free)
    for name in free:
        path = defaults.path_of(name)
        if path is not None and path not in accepted and not problems:
            # Only an old spelling of Pulsar's is left out without a problem.
            problems = [f"{name}: not read while {path} is set; change that"]
    after = defaults.with_accepted(defaults.read(overrides)[0] | accepted)
    for problem in (*problems, *contradictions(after)):
        yield IntentRule.INVALID_SETTING, problem


def reset_flaws(
    overrides: Mapping[str, Value], names: Collection[str], defaults: Settings
) -> Iterator[Flaw]:
    """What is wrong with a reset: unknown names, or a contradiction with what stays changed."""
    yield from _fixed(names)
    for name in _not_fixed(names):
        # A setting of an earlier version can be reset, too.
        if defaults.path_of(name) is None and name not in overrides:
            yield IntentRule.INVALID_SETTING, defaults.absence_of(name)
    kept = without_names(overrides, names, defaults)
    for problem in contradictions(defaults.with_accepted(defaults.read(kept)[0])):
        yield IntentRule.INVALID_SETTING, problem


def without_names(
    overrides: Mapping[str, Value], names: Collection[str], defaults: Settings
) -> dict[str, Value]:
    """The overrides that remain after a reset of ``names``, or of all without names."""
    if not names:
        return {}
    paths = {defaults.path_of(name) or name for name in names}
    return {
        name: value
        for name, value in overrides.items()
        if (defaults.path_of(name) or name) not in paths
    }


def _fixed(names: Collection[str]) -> Iterator[Flaw]:
    for name in names:
        if name.startswith(FIXED) and name not in _INTAKE:
            problem = f"{name}: no such setting; {nearby(name, _INTAKE)}"
            yield IntentRule.INVALID_SETTING, problem
        elif name.startswith(FIXED):
            yield (
                IntentRule.FIXED_SETTING,
                f"{name}: is fixed while the job runs; change [intake] in the job's file and start "
                "the job again",
            )


def _not_fixed(names: Collection[str]) -> list[str]:
    return [name for name in names if not name.startswith(FIXED)]


def _policy_flaws(policies: Policies, intent: Intent) -> Iterator[Flaw]:
    if intent.isolation is not None:
        yield from _impossible(intent.isolation)
        return
    if intent.kind is IntentKind.FAILURE_DOMAIN:
        yield from _taken(policies, intent)
    existing, deletes = {
        IntentKind.ISOLATION: (policies.isolation.keys(), True),
        IntentKind.ANTI_AFFINITY: (policies.groups.keys(), not intent.group),
        IntentKind.FAILURE_DOMAIN: ({*policies.domains.values()}, not intent.brokers),
    }[intent.kind]
    if deletes and intent.name not in existing:
        near = nearby(intent.name, existing)
        yield (
            IntentRule.UNKNOWN_POLICY,
            f"name: {intent.name} has no {intent.kind.value} to delete; {near}",
        )


def _taken(policies: Policies, intent: Intent) -> Iterator[Flaw]:
    """A broker is in one domain, and leaves it before it joins another (as in Pulsar)."""
    for broker in intent.brokers:
        domain = policies.domains.get(broker, intent.name)
        if domain != intent.name:
            problem = f"brokers: {broker} is in {domain}; set {domain} without it first"
            yield IntentRule.INVALID_POLICY, problem


def _split_flaws(intent: Intent, settings: Settings) -> Iterator[Flaw]:
    rule, positions = IntentRule.INVALID_SPLIT, intent.positions
    try:
        low, high = parse_bundle(intent.bundle)[1]
    except InvalidName as error:
        yield rule, f"bundle: {error}"
        return
    algorithm = algorithm_of(intent) or settings.split.algorithm
    supported = settings.split.supported_algorithms()
    if algorithm not in supported:
        yield rule, f"algorithm: {algorithm} is not in split.supported: {', '.join(supported)}"
    if (algorithm == BY_POSITIONS) != bool(positions):
        yield rule, f"positions: {BY_POSITIONS} needs some, and no other algorithm reads them"
    if high - low < 2:
        yield rule, "bundle: its range is too small to be split"
    for position in sorted(set(positions)):
        if not low < position < high:
            yield rule, f"positions: {position:#010x} does not lie inside {intent.bundle}"
    if len(set(positions)) < len(positions):
        yield rule, "positions: two are equal, which makes an empty child"


def algorithm_of(intent: Intent) -> str:
    """The algorithm that a split's intent names or, by its positions, means; "" for the default."""
    return intent.algorithm or (BY_POSITIONS if intent.positions else "")


def asked_split(intent: Intent) -> AskedSplit:
    """What the next round is asked to do."""
    return AskedSplit(algorithm_of(intent), tuple(sorted(intent.positions)))


def _impossible(policy: Isolation) -> Iterator[Flaw]:
    rule = IntentRule.INVALID_POLICY
    if policy.min_available < 0:
        yield rule, f"isolation.min_available: must not be negative, not {policy.min_available}"
    for member in ("namespaces", "primary", "secondary"):
        for pattern in getattr(policy, member):
            try:
                re.compile(pattern)
            except re.error as error:
                yield rule, f"isolation.{member}: {pattern!r} is no regular expression: {error}"


POLICIES: Final = frozenset(
    {IntentKind.ISOLATION, IntentKind.ANTI_AFFINITY, IntentKind.FAILURE_DOMAIN}
)
"""The intents that change a policy."""

_SUBJECTS: Final[Mapping[IntentKind, str]] = MappingProxyType(
    {
        IntentKind.SETTINGS: "settings",
        IntentKind.BROKER_LOST: "broker",
        IntentKind.BROKER_JOINED: "broker",
        IntentKind.DRAIN: "broker",
        IntentKind.UNDRAIN: "broker",
        IntentKind.DOUBT: "name",
        IntentKind.READMIT: "bundle",
        IntentKind.SPLIT: "bundle",
        IntentKind.ISOLATION: "name",
        IntentKind.ANTI_AFFINITY: "name",
        IntentKind.FAILURE_DOMAIN: "name",
    }
)
"""The member that names an intent's subject."""
