"""Applies an operator's intents to a cluster's memory.

An invalid intent only adds a problem, which the next round reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from trimtab.doubt import Doubt
from trimtab.policies import Isolation, Policies
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.state.liveness import Late, Liveness
from trimtab.state.memory import Memory
from trimtab.wire.control import Intent, IntentKind

V = TypeVar("V")

_CAUTION: Final = ("round.observe_only", "round.enabled", "loadBalancerSheddingEnabled")
"""Settings under which the job acts less; they contradict no others."""


def apply_intent(
    memory: Memory, intent: Intent, defaults: Settings, at_ms: int, now_ms: int
) -> Memory:
    """The memory after an intent with LogAppendTime ``at_ms``; ``defaults`` are the job's settings,
    ``now_ms`` is the batch timestamp."""
    if intent.kind is IntentKind.SETTINGS:
        return _overridden(memory, intent, defaults)
    problems = list(_flaws(intent))
    if problems:
        return _refused(memory, intent, problems)
    if intent.kind in _POLICIES:
        return replace(memory, policies=_POLICIES[intent.kind](memory.policies, intent))
    after = _EFFECTS[intent.kind](memory, intent, at_ms, now_ms)
    # Only if something is new: an intent sent every second must not cause a round every second.
    return memory if after == memory else replace(after, repair_ms=now_ms)


def _liveness(memory: Memory, liveness: Liveness) -> Memory:
    return replace(memory, liveness=liveness)


def _doubt(memory: Memory, intent: Intent) -> Memory:
    level = None if intent.level is Doubt.STABLE else intent.level
    return replace(memory, doubts=_changed(memory.doubts, intent.name, level))


def _resume(memory: Memory) -> Memory:
    # Closes the breaker too, even without a pause: the operator has seen what is wrong.
    closed = replace(memory.round, breaker=memory.round.breaker.closed())
    return replace(memory, paused=False, round=closed)


_EFFECTS: Final[Mapping[IntentKind, Callable[[Memory, Intent, int, int], Memory]]] = {
    IntentKind.BROKER_LOST: lambda memory, intent, at_ms, now_ms: _liveness(
        memory,
        memory.liveness.lost(intent.broker, at_ms, now_ms, Late(intent.brokers, intent.page)),
    ),
    IntentKind.BROKER_JOINED: lambda memory, intent, at_ms, _: _liveness(
        memory, memory.liveness.joined(intent.broker, at_ms)
    ),
    IntentKind.DRAIN: lambda memory, intent, *_: _liveness(
        memory, memory.liveness.drained(intent.broker)
    ),
    IntentKind.UNDRAIN: lambda memory, intent, *_: _liveness(
        memory, memory.liveness.undrained(intent.broker)
    ),
    IntentKind.DOUBT: lambda memory, intent, *_: _doubt(memory, intent),
    IntentKind.READMIT: lambda memory, intent, *_: replace(
        memory, readmitted=tuple(sorted({*memory.readmitted, intent.bundle}))
    ),
    IntentKind.PAUSE: lambda memory, *_: replace(memory, paused=True),
    IntentKind.RESUME: lambda memory, *_: _resume(memory),
}
"""The memory after an intent that may leave something to repair; Kafka got the intent at the first
time, and the batch's timestamp is the second. Settings and policies are elsewhere."""


def _overridden(memory: Memory, intent: Intent, defaults: Settings) -> Memory:
    overrides = {**memory.overrides, **intent.settings}
    try:
        defaults.changed(overrides)
    except InvalidSettings as error:
        return _refused(memory, intent, error.problems)
    return replace(memory, overrides=overrides, settings_version=memory.settings_version + 1)


def resolve_settings(memory: Memory, defaults: Settings) -> tuple[Settings, list[str]]:
    """The cluster's settings, and the reasons if its own changes are left out.

    The changes were valid when they arrived; a job started with other settings may contradict them.
    What keeps the job from acting is never left out: an operator said so.
    """
    if not memory.overrides:
        # The case for most clusters, and this runs several times per batch.
        return defaults, []
    try:
        return defaults.changed(memory.overrides), []
    except InvalidSettings as error:
        kept = {name: value for name, value in memory.overrides.items() if name in _CAUTION}
        problems = [f"changed settings are left out: {p}" for p in error.problems]
        return defaults.changed(kept), problems


def _refused(memory: Memory, intent: Intent, problems: Iterable[str]) -> Memory:
    texts = [f"intent {intent.id}: {problem}" for problem in problems]
    return replace(memory, problems=[*memory.problems, *texts])


def _flaws(intent: Intent) -> Iterator[str]:
    subject = _SUBJECTS.get(intent.kind)
    if subject is not None and not getattr(intent, subject):
        yield f"{subject}: says nothing of what it is about"
    if intent.kind is IntentKind.ISOLATION and intent.isolation is not None:
        yield from _impossible(intent.isolation)


def _impossible(policy: Isolation) -> Iterator[str]:
    if policy.min_available < 0:
        yield f"isolation.min_available: must not be negative, not {policy.min_available}"
    for member in ("namespaces", "primary", "secondary"):
        for pattern in getattr(policy, member):
            try:
                re.compile(pattern)
            except re.error as error:
                yield f"isolation.{member}: {pattern!r} is no regular expression: {error}"


def _isolation(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, isolation=_changed(policies.isolation, intent.name, intent.isolation))


def _group(policies: Policies, intent: Intent) -> Policies:
    return replace(policies, groups=_changed(policies.groups, intent.name, intent.group or None))


def _domain(policies: Policies, intent: Intent) -> Policies:
    # A broker is in one domain: the last list that names it wins.
    others = {b: d for b, d in policies.domains.items() if d != intent.name}
    return replace(policies, domains=others | dict.fromkeys(intent.brokers, intent.name))


_SUBJECTS: Final[Mapping[IntentKind, str]] = MappingProxyType(
    {
        IntentKind.BROKER_LOST: "broker",
        IntentKind.BROKER_JOINED: "broker",
        IntentKind.DRAIN: "broker",
        IntentKind.UNDRAIN: "broker",
        IntentKind.DOUBT: "name",
        IntentKind.READMIT: "bundle",
        IntentKind.ISOLATION: "name",
        IntentKind.ANTI_AFFINITY: "name",
        IntentKind.FAILURE_DOMAIN: "name",
    }
)
"""The member that names an intent's subject."""

_POLICIES: Final[Mapping[IntentKind, Callable[[Policies, Intent], Policies]]] = MappingProxyType(
    {
        IntentKind.ISOLATION: _isolation,
        IntentKind.ANTI_AFFINITY: _group,
        IntentKind.FAILURE_DOMAIN: _domain,
    }
)


def _changed(values: Mapping[str, V], name: str, value: V | None) -> dict[str, V]:
    """``values`` with one entry set, or removed if None; sorted by name."""
    changed = {**values, name: value}
    return {key: kept for key, kept in sorted(changed.items()) if kept is not None}
