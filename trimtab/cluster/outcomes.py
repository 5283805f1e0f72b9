"""The immediate outcomes of operators' intents: each is refused, accepted or done.

Two intents with one id are one request. What takes time is followed by
`trimtab.cluster.pending_intents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from trimtab.kept_plans.kept_plan import undo_id
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.pending import Awaited, Pending
from trimtab.wire.intent import LONGEST_ID, OF_THE_WATCHER, Intent, IntentKind, fingerprint
from trimtab.wire.intent_outcome import IntentOutcome, IntentState
from trimtab.wire.ownership import Record
from trimtab.wire.rows import brief

V = TypeVar("V")

REMEMBERED: Final = 1000
"""Intents whose ids are remembered, the newest ones. Lower: a request that comes again after many
others counts as a new one; higher: the state that every batch writes grows."""

_LASTING: Final = frozenset(
    {
        IntentKind.UNLOAD,
        IntentKind.SPLIT,
        IntentKind.MERGE,
        IntentKind.READMIT,
        IntentKind.DRAIN,
        IntentKind.NAMESPACE,
        IntentKind.APPROVE,
        IntentKind.UNDO,
    }
)
OF_PLANS: Final = frozenset({IntentKind.APPROVE, IntentKind.UNDO})
"""Intents that are done when their plan is (`trimtab.cluster.plans.outcomes`)."""
_UNBOUNDED: Final = OF_PLANS | {IntentKind.DRAIN}
"""Intents that wait without an end of their own."""
BY_BUNDLE: Final = _LASTING - _UNBOUNDED
"""Intents that are followed by the result for each bundle."""
_DECIDED_BY_ROUNDS: Final = frozenset({IntentKind.UNLOAD, IntentKind.SPLIT, IntentKind.MERGE})


class Told(NamedTuple):
    """The memory after intents were accepted, refused or done, and the outcomes to publish."""

    memory: Memory
    outcomes: tuple[IntentOutcome, ...] = ()


def is_repeated(memory: Memory, intent: Intent) -> bool:
    """Whether the same request was applied or refused before."""
    return intent.id in memory.intents and memory.intents[intent.id] == fingerprint(intent)


def refuse(memory: Memory, intent: Intent, rule: str, problems: Iterable[str], now_ms: int) -> Told:
    """Note a refused intent. If another intent has its id, that one's outcome stands; none is
    noted under an id that cannot be a key."""
    if intent.id in memory.intents or not 0 < len(intent.id) <= LONGEST_ID:
        return Told(memory)
    refused = _outcome(intent, IntentState.REFUSED, now_ms, rule, tuple(map(brief, problems)))
    return _remembered(memory, intent, refused)


def accept(
    memory: Memory,
    intent: Intent,
    bundles: Mapping[str, Record],
    settings: Settings,
    now_ms: int,
) -> Told:
    """Note an applied intent; ``bundles`` are those that it concerns, with their records."""
    if intent.kind not in _LASTING:
        called_off = _call_off_drain(memory, intent, now_ms)
        done = _outcome(intent, IntentState.DONE, now_ms)
        told = _remembered(called_off.memory, intent, done)
        return told._replace(outcomes=called_off.outcomes + told.outcomes)
    patience_s = 2 * settings.round.interval + settings.round.move_deadline
    decided = intent.kind not in _DECIDED_BY_ROUNDS
    pending = Pending(
        kind=intent.kind.value,
        subject=_subject(intent),
        awaited={
            bundle: Awaited(record.owner or "", decided) for bundle, record in bundles.items()
        },
        until_ms=0 if intent.kind in _UNBOUNDED else now_ms + round(1000 * patience_s),
    )
    if intent.kind not in _UNBOUNDED and not bundles:
        return _remembered(memory, intent, _outcome(intent, IntentState.DONE, now_ms))
    memory = replace(memory, pending=memory.pending | {intent.id: pending})
    return _remembered(memory, intent, _outcome(intent, IntentState.ACCEPTED, now_ms))


def _subject(intent: Intent) -> str:
    if intent.kind is IntentKind.UNDO:
        return undo_id(intent.plan)
    return intent.plan or intent.bundle or intent.name or intent.broker


def _call_off_drain(memory: Memory, intent: Intent, now_ms: int) -> Told:
    """End the drains of a broker that an intent uses again."""
    if intent.kind is not IntentKind.UNDRAIN:
        return Told(memory)
    why = f"{intent.broker} is used again"
    ended = {
        name: outcome_of(
            intent.cluster, name, replace(each, problems=(why,)), IntentState.EXPIRED, now_ms
        )
        for name, each in memory.pending.items()
        if each.kind == IntentKind.DRAIN and each.subject == intent.broker
    }
    return end_pending(memory, ended)


def end_pending(memory: Memory, ended: Mapping[str, IntentOutcome]) -> Told:
    """The memory without pending intents that have ended, and their outcomes, by id."""
    if not ended:
        return Told(memory)
    outcomes = tuple(each.of(memory.intents.get(name, 0)) for name, each in ended.items())
    return Told(replace(memory, pending=without(memory.pending, *ended)), outcomes)


def _remembered(memory: Memory, intent: Intent, outcome: IntentOutcome) -> Told:
    if intent.kind in OF_THE_WATCHER:
        return Told(memory)
    ids = {**memory.intents, intent.id: fingerprint(intent)}
    kept = dict(list(ids.items())[-REMEMBERED:])
    return Told(replace(memory, intents=kept), (outcome,))


def _outcome(
    intent: Intent, state: IntentState, now_ms: int, rule: str = "", problems: tuple[str, ...] = ()
) -> IntentOutcome:
    return IntentOutcome(
        cluster=intent.cluster,
        id=intent.id,
        kind=intent.kind,
        state=state,
        at=now_ms,
        rule=rule,
        problems=problems,
        asked=fingerprint(intent),
    )


def outcome_of(
    cluster: str, name: str, pending: Pending, state: IntentState, now_ms: int
) -> IntentOutcome:
    """The outcome of the pending intent with the id ``name``."""
    return IntentOutcome(
        cluster=cluster,
        id=name,
        kind=IntentKind(pending.kind),
        state=state,
        at=now_ms,
        rule=pending.rule,
        problems=pending.problems,
    )


def without(values: Mapping[str, V], *names: str) -> dict[str, V]:
    """``values`` without the entries of these ``names``."""
    return {name: value for name, value in values.items() if name not in names}
