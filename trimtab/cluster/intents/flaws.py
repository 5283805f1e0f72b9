"""What is wrong with an intent, as far as the cluster's memory and settings can tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from trimtab.cluster.intents.controls import CONTROLS, budget_flaws, mode_flaws, pin_flaws
from trimtab.cluster.intents.migrations import MIGRATION_FLAWS
from trimtab.cluster.intents.migrations import VERBS as MIGRATION_VERBS
from trimtab.cluster.intents.policies import POLICIES, policy_flaws
from trimtab.cluster.intents.settings import SETTINGS, reset_flaws, setting_flaws
from trimtab.cluster.intents.size import excesses
from trimtab.cluster.plans.drains import DRAIN_PLANS, drain_plan_flaws
from trimtab.cluster.plans.verbs import VERBS, plan_flaws
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.model import FULL_RANGE_END, InvalidName, namespace_of, parse_bundle
from trimtab.settings import Settings
from trimtab.settings.words import BY_POSITIONS
from trimtab.state.memory import Memory
from trimtab.state.round_state import AskedSplit
from trimtab.wire.intent import LONGEST_ID, LONGEST_REASON, OF_THE_WATCHER, Intent, IntentKind

MOST_BUNDLES: Final = 1024
"""Bundles of a new namespace. Fewer: too few for the largest; more: one intent fills batches."""
_NAMESPACE: Final = re.compile(r"[-=:.\w]+/[-=:.\w]+", re.ASCII)
"""The characters of Pulsar's NamedEntity."""


def intent_flaws(memory: Memory, intent: Intent, defaults: Settings, now_ms: int) -> Iterator[Flaw]:
    """All that is wrong with an intent; ``defaults`` are the job's settings."""
    subject = _SUBJECTS.get(intent.kind)
    if not (0 < len(intent.id) <= LONGEST_ID or intent.kind in OF_THE_WATCHER):
        yield IntentRule.INVALID_ID, f"id: needs 1 to {LONGEST_ID} characters, to tell its outcome"
    elif intent.id in memory.intents:
        yield IntentRule.ID_IN_USE, "id: an earlier intent with it asked for something else"
    elif len(intent.reason) > LONGEST_REASON:
        problem = f"reason: has {len(intent.reason)} characters, and {LONGEST_REASON} at most"
        yield IntentRule.INVALID_REASON, problem
    elif intent.kind not in OF_THE_WATCHER and (problems := list(excesses(intent))):
        yield from ((IntentRule.TOO_LARGE, problem) for problem in problems)
    elif subject is not None and not getattr(intent, subject):
        yield IntentRule.NO_SUBJECT, f"{subject}: says nothing of what it is about"
    elif intent.kind in _FLAWS:
        yield from _FLAWS[intent.kind](memory, intent, defaults)
    elif intent.kind in (IntentKind.PIN, IntentKind.UNPIN):
        yield from pin_flaws(memory, intent, now_ms)


def _split_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    settings = defaults.with_valid(memory.overrides)
    rule, positions = IntentRule.INVALID_SPLIT, intent.positions
    yield from _pinned(memory, intent)
    waiting = memory.round.asked.get(intent.bundle, asked_split(intent))
    if waiting != asked_split(intent):
        how = ", ".join(f"{at:#010x}" for at in waiting.positions) or waiting.algorithm
        yield _conflict(f"a split by {how or settings.split.algorithm}")
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
    yield from ((rule, problem) for problem in _position_problems(intent, low, high))


def _merge_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    yield from _pinned(memory, intent)
    try:
        parse_bundle(intent.bundle)
    except InvalidName as error:
        yield IntentRule.INVALID_MERGE, f"bundle: {error}"
    if defaults.with_valid(memory.overrides).round.observe_only:
        problem = "round.observe_only: the job merges nothing; set it to false first"
        yield IntentRule.OBSERVING, problem


def _position_problems(intent: Intent, low: int, high: int) -> Iterator[str]:
    for position in sorted(set(intent.positions)):
        if not low < position < high:
            yield f"positions: {position:#010x} does not lie inside {intent.bundle}"
    if len(set(intent.positions)) < len(intent.positions):
        yield "positions: two are equal, which makes an empty child"


def _namespace_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    rule = IntentRule.INVALID_NAMESPACE
    if not _NAMESPACE.fullmatch(intent.name):
        text = intent.name[:200]
        yield rule, f"name: {text!r} is not tenant/namespace in letters, digits and -_=:."
    if len(intent.positions) >= MOST_BUNDLES:
        yield rule, f"positions: would make more than {MOST_BUNDLES} bundles"
    edges = (0, *intent.positions, FULL_RANGE_END)
    if any(low >= high for low, high in pairwise(edges)):
        yield rule, f"positions: must ascend between 0 and {FULL_RANGE_END:#x}, without repeats"
    if any(namespace_of(bundle) == intent.name for bundle in memory.created):
        yield IntentRule.NAMESPACE_EXISTS, f"name: {intent.name} is just being created"
    if defaults.with_valid(memory.overrides).round.observe_only:
        problem = "round.observe_only: the job assigns nothing; set it to false first"
        yield IntentRule.OBSERVING, problem


def _move_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    if bool(intent.bundle) == bool(intent.name):
        yield IntentRule.NO_SUBJECT, "bundle, name: say which bundle, or by name which namespace"
    settings = defaults.with_valid(memory.overrides)
    if settings.round.observe_only:
        problem = "round.observe_only: the job moves nothing; set it to false first"
        yield IntentRule.OBSERVING, problem
    yield from _pinned(memory, intent)
    liveness = memory.liveness
    if intent.broker and intent.broker in {*liveness.gone, *liveness.draining}:
        why = "is lost" if intent.broker in liveness.gone else "is being drained"
        yield IntentRule.INVALID_MOVE, f"broker: {intent.broker} {why}, and gets no bundles"
    waiting = memory.round.asked_moves.get(intent.bundle, intent.broker)
    if waiting != intent.broker:
        yield _conflict(f"a move to {waiting or 'where placement finds best'}")


def _conflict(waiting: str) -> Flaw:
    problem = f"bundle: {waiting} is asked of it already, and waits for the next round"
    return IntentRule.CONFLICT, problem


def _pinned(memory: Memory, intent: Intent) -> Iterator[Flaw]:
    pin = memory.controls.pin_of(intent.bundle) if intent.bundle else None
    if pin is not None:
        by = f" by {pin.by}" if pin.by else ""
        yield IntentRule.PINNED, f"bundle: {intent.bundle} is pinned{by}; end the pin first"


def algorithm_of(intent: Intent) -> str:
    """The algorithm that a split's intent names or its positions imply; "" for the default."""
    return intent.algorithm or (BY_POSITIONS if intent.positions else "")


def asked_split(intent: Intent) -> AskedSplit:
    """What the next round is asked to do."""
    return AskedSplit(algorithm_of(intent), tuple(sorted(intent.positions)))


FROM_ROUNDS: Final = SETTINGS.keys() | POLICIES.keys() | CONTROLS.keys()
"""Intents whose effect the next round's record shows."""


_FLAWS: Final[Mapping[IntentKind, Callable[[Memory, Intent, Settings], Iterator[Flaw]]]] = (
    MappingProxyType(
        {
            IntentKind.SETTINGS: lambda memory, intent, defaults: setting_flaws(
                memory.overrides, intent.settings, defaults
            ),
            IntentKind.RESET: lambda memory, intent, defaults: reset_flaws(
                memory.overrides, intent.names, defaults
            ),
            IntentKind.SPLIT: _split_flaws,
            IntentKind.MERGE: _merge_flaws,
            IntentKind.UNLOAD: _move_flaws,
            IntentKind.NAMESPACE: _namespace_flaws,
            IntentKind.MODE: mode_flaws,
            IntentKind.BUDGET: budget_flaws,
            **MIGRATION_FLAWS,
            **dict.fromkeys(POLICIES, policy_flaws),
            **dict.fromkeys(VERBS, plan_flaws),
            **dict.fromkeys(DRAIN_PLANS, drain_plan_flaws),
        }
    )
)
"""What may be wrong with an intent of a kind, besides a missing subject."""

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
        IntentKind.MERGE: "bundle",
        IntentKind.NAMESPACE: "name",
        IntentKind.ISOLATION: "name",
        IntentKind.ANTI_AFFINITY: "name",
        IntentKind.FAILURE_DOMAIN: "name",
        IntentKind.MODE: "name",
        IntentKind.BUDGET: "name",
        IntentKind.MIGRATION_START: "scope",
        **dict.fromkeys(MIGRATION_VERBS, "migration"),
        IntentKind.NAMESPACE_MIGRATION: "name",
        IntentKind.MIGRATION_PROGRESS: "migration",
        **dict.fromkeys(VERBS, "plan"),
        **dict.fromkeys(DRAIN_PLANS, "brokers"),
    }
)
"""The member that names an intent's subject."""
