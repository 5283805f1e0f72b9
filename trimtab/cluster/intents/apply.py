"""Applies an operator's intents to a cluster's memory.

An invalid intent changes nothing: it adds a problem, which the next round reports, and is refused
with the rule that it broke.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from trimtab.cluster.intents.controls import CONTROLS, changed
from trimtab.cluster.intents.existing import Existing, absences, concerned, find_above, new_bundles
from trimtab.cluster.intents.flaws import asked_split, intent_flaws
from trimtab.cluster.intents.migrations import MIGRATIONS
from trimtab.cluster.intents.policies import POLICIES
from trimtab.cluster.intents.settings import SETTINGS, resolve_settings
from trimtab.cluster.plans.drain_cost import count_owned
from trimtab.cluster.plans.drains import DRAIN_PLANS, make_drain_plan
from trimtab.cluster.plans.verbs import VERBS, apply_verb
from trimtab.doubt import Doubt
from trimtab.intent_rules import IntentRule
from trimtab.settings import Settings
from trimtab.state.liveness import Late, Liveness
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import NO_RECORD, Record


class Refused(NamedTuple):
    """Why an intent changed nothing: the first rule that it broke, and all that is wrong."""

    rule: IntentRule
    problems: tuple[str, ...]


class _Asked(NamedTuple):
    intent: Intent
    at_ms: int
    """When Kafka got it."""
    now_ms: int
    settings: Settings
    """The settings in force."""
    bundles: Collection[str]
    """The bundles that it concerns."""
    existing: Existing | None


class Applied(NamedTuple):
    """The memory after an intent; ``refused`` is None if the intent was accepted."""

    memory: Memory
    refused: Refused | None = None
    bundles: Mapping[str, Record] = MappingProxyType({})
    """The bundles that the intent concerns, with their records, as far as both are known."""


def apply_intent(  # noqa: PLR0913 - a cluster, an intent, and both clocks
    memory: Memory,
    intent: Intent,
    defaults: Settings,
    at_ms: int,
    now_ms: int,
    existing: Existing | None = None,
) -> Applied:
    """The memory after an intent with LogAppendTime ``at_ms``; ``defaults`` are the job's settings,
    ``now_ms`` is the batch timestamp. Without ``existing``, what an intent names is taken to exist.
    """
    flaws = list(intent_flaws(memory, intent, defaults, now_ms))
    if not flaws and existing is not None:
        flaws = list(absences(intent, existing))
    if flaws:
        texts = [f"intent {intent.id}: {problem}" for _, problem in flaws]
        refused = Refused(flaws[0][0], tuple(problem for _, problem in flaws))
        return Applied(replace(memory, problems=[*memory.problems, *texts]), refused)
    if intent.kind in SETTINGS:
        return Applied(SETTINGS[intent.kind](memory, intent, defaults))
    if intent.kind in POLICIES:
        return Applied(replace(memory, policies=POLICIES[intent.kind](memory.policies, intent)))
    if intent.kind in CONTROLS:
        return Applied(replace(memory, controls=CONTROLS[intent.kind](memory.controls, intent)))
    if intent.kind in MIGRATIONS:
        kept = MIGRATIONS[intent.kind](memory.migrations, intent, now_ms)
        return Applied(replace(memory, migrations=kept))
    found = {} if existing is None else concerned(intent, existing.records)
    if intent.kind is IntentKind.NAMESPACE:
        found = dict.fromkeys(new_bundles(intent), NO_RECORD)
    names = [intent.bundle] if existing is None else found
    settings = resolve_settings(memory, defaults)[0]
    after = _EFFECTS[intent.kind](memory, _Asked(intent, at_ms, now_ms, settings, names, existing))
    # Only if something is new: an intent sent every second must not cause a round every second.
    after = memory if after == memory else replace(after, repair_ms=now_ms)
    return Applied(after, bundles=found)


def _liveness(memory: Memory, liveness: Liveness) -> Memory:
    return replace(memory, liveness=liveness)


def _doubt(memory: Memory, intent: Intent) -> Memory:
    level = None if intent.level is Doubt.STABLE else intent.level
    return replace(memory, doubts=changed(memory.doubts, intent.name, level))


def _ask_split(memory: Memory, intent: Intent) -> Memory:
    asked = {**memory.round.asked, intent.bundle: asked_split(intent)}
    state = replace(memory.round, asked=asked)
    return replace(memory, round=state)


def _ask_moves(memory: Memory, asked: _Asked) -> Memory:
    moves = memory.round.asked_moves | dict.fromkeys(asked.bundles, asked.intent.broker)
    return replace(memory, round=replace(memory.round, asked_moves=moves))


def _ask_merge(memory: Memory, asked: _Asked) -> Memory:
    bundle, existing = asked.intent.bundle, asked.existing
    above = find_above(bundle, existing.records) if existing else ""
    merges = memory.round.asked_merges | ({bundle: above} if above else {})
    return replace(memory, round=replace(memory.round, asked_merges=merges))


def _resume(memory: Memory) -> Memory:
    # Closes the breaker too, even without a pause: the operator has seen what is wrong.
    closed = replace(memory.round, breaker=memory.round.breaker.closed(), forgiven=True)
    return replace(memory, paused=False, round=closed)


def _plan_drain(memory: Memory, asked: _Asked) -> Memory:
    owned, existing, now_ms = Counter[str](), asked.existing, asked.now_ms
    for namespace in existing.namespaces() if existing else ():
        owned += count_owned(existing.records(namespace)) if existing else Counter()
    away = memory.liveness.out_of_use(asked.settings.flapping, now_ms) - {*asked.intent.brokers}
    counts = {broker: owned[broker] for broker in {*memory.appended, *owned} if broker not in away}
    return make_drain_plan(memory, asked.intent, counts, asked.settings, now_ms)


_EFFECTS: Final[Mapping[IntentKind, Callable[[Memory, _Asked], Memory]]] = {
    IntentKind.BROKER_LOST: lambda memory, asked: _liveness(
        memory,
        memory.liveness.lost(
            asked.intent.broker,
            asked.at_ms,
            asked.now_ms,
            Late(asked.intent.brokers, asked.intent.page),
        ),
    ),
    IntentKind.BROKER_JOINED: lambda memory, asked: _liveness(
        memory, memory.liveness.joined(asked.intent.broker, asked.at_ms)
    ),
    IntentKind.DRAIN: lambda memory, asked: _liveness(
        memory, memory.liveness.drained(asked.intent.broker)
    ),
    IntentKind.UNDRAIN: lambda memory, asked: _liveness(
        memory, memory.liveness.undrained(asked.intent.broker)
    ),
    IntentKind.DOUBT: lambda memory, asked: _doubt(memory, asked.intent),
    IntentKind.READMIT: lambda memory, asked: replace(
        memory, readmitted=tuple(sorted({*memory.readmitted, asked.intent.bundle}))
    ),
    IntentKind.UNLOAD: _ask_moves,
    IntentKind.NAMESPACE: lambda memory, asked: replace(
        memory, created=tuple(sorted({*memory.created, *asked.bundles}))
    ),
    IntentKind.SPLIT: lambda memory, asked: _ask_split(memory, asked.intent),
    IntentKind.MERGE: _ask_merge,
    IntentKind.PAUSE: lambda memory, _: replace(memory, paused=True),
    IntentKind.RESUME: lambda memory, _: _resume(memory),
    **dict.fromkeys(DRAIN_PLANS, lambda memory, asked: _plan_drain(memory, asked)),
    **dict.fromkeys(
        VERBS,
        lambda memory, asked: apply_verb(memory, asked.intent, asked.settings, asked.now_ms),
    ),
}
"""The memory after an intent that may leave something to repair. The others are in `SETTINGS`,
`POLICIES`, `CONTROLS` and `MIGRATIONS`."""
