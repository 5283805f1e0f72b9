"""What came of operators' intents: each is refused, or accepted and then done or expired.

an intent     is done as soon as
  unload      its bundle has another owner, or none
  split       its bundle is deleted
  readmit     its bundle is not quarantined
  drain       its broker owns no bundle
  any other   it is accepted
A round may refuse what it was asked for. What takes longer than two rounds and a move expires; a
drain never does, as it stays in force.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from trimtab.model import NO_EPOCH
from trimtab.ownership import Event, State
from trimtab.plan import Plan
from trimtab.reasons import IntentRule, Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.pending import Pending
from trimtab.view import is_monitoring
from trimtab.wire.control import OF_THE_WATCHER, Intent, IntentKind, fingerprint
from trimtab.wire.intent_outcome import IntentOutcome, IntentState
from trimtab.wire.ownership import Change, Record

REMEMBERED: Final = 1000
"""Intents whose ids are remembered, the newest ones. Lower: a request that comes again after many
others counts as a new one; higher: the state that every batch writes grows."""

_LASTING: Final = frozenset(
    {IntentKind.UNLOAD, IntentKind.SPLIT, IntentKind.READMIT, IntentKind.DRAIN}
)


class Told(NamedTuple):
    """The memory after something became known of intents, and the outcomes to tell."""

    memory: Memory
    outcomes: tuple[IntentOutcome, ...] = ()


def is_repeated(memory: Memory, intent: Intent) -> bool:
    """Whether the same request was applied or refused before."""
    return intent.id in memory.intents and memory.intents[intent.id] == fingerprint(intent)


def refuse(memory: Memory, intent: Intent, rule: str, problems: Iterable[str], at_ms: int) -> Told:
    """An intent changed nothing. If its id is another one's, that one's outcome stands."""
    if intent.id in memory.intents or rule == IntentRule.INVALID_ID:
        return Told(memory)
    told = _outcome(intent, IntentState.REFUSED, at_ms, rule, tuple(problems))
    return _remembered(memory, intent, told)


def accept(
    memory: Memory, intent: Intent, record: Record | None, settings: Settings, now_ms: int
) -> Told:
    """An intent was applied; ``record`` is its bundle's."""
    if intent.kind not in _LASTING:
        lifted = Told(memory)
        if intent.kind is IntentKind.UNDRAIN:
            lifted = _lift_drain(memory, intent, now_ms)
        memory, outcomes = _remembered(
            lifted.memory, intent, _outcome(intent, IntentState.DONE, now_ms)
        )
        return Told(memory, lifted.outcomes + outcomes)
    patience_s = 2 * settings.round.interval + settings.round.move_deadline
    pending = Pending(
        kind=intent.kind.value,
        subject=intent.bundle or intent.broker,
        source=(record.owner if record is not None else None) or "",
        epoch=NO_EPOCH if record is None else record.epoch,
        until_ms=0 if intent.kind is IntentKind.DRAIN else now_ms + round(1000 * patience_s),
        decided=intent.kind not in (IntentKind.UNLOAD, IntentKind.SPLIT),
    )
    memory = replace(memory, pending=memory.pending | {intent.id: pending})
    return _remembered(memory, intent, _outcome(intent, IntentState.ACCEPTED, now_ms))


def note_changes(
    cluster: str, memory: Memory, records: Mapping[str, Record], declined: Collection[str],
    now_ms: int,
) -> Told:  # fmt: skip
    """Bundles have new ``records``; ``declined`` are those whose owner found nothing to split."""
    if not memory.pending:
        return Told(memory)
    ended: dict[str, IntentOutcome] = {}
    for name, pending in memory.pending.items():
        record = records.get(pending.subject)
        if record is None or pending.kind == IntentKind.DRAIN:
            continue
        if pending.kind == IntentKind.SPLIT and pending.subject in declined:
            problem = "its owner found nothing to split; its log says why"
            ended[name] = _ended(
                cluster, name, pending, IntentState.REFUSED, now_ms, Rule.UNDIVIDABLE, problem
            )
        elif _is_done(pending, record):
            ended[name] = _ended(cluster, name, pending, IntentState.DONE, now_ms)
    return _without(memory, ended)


def note_round(
    cluster: str, memory: Memory, plan: Plan, records: Mapping[str, Record], now_ms: int
) -> Told:
    """A round was held; ``records`` are all of the cluster's, none while it only observes."""
    if not memory.pending:
        return Told(memory)
    refusals = {refusal.bundle: refusal for refusal in reversed(plan.refusals)}
    waiting = memory.round.asked.keys() | memory.round.asked_moves.keys()
    owners = _owners(records) if records else None
    ended: dict[str, IntentOutcome] = {}
    decided: dict[str, Pending] = {}
    for name, pending in memory.pending.items():
        granted = pending.decided or pending.subject not in waiting
        if not pending.decided and granted and (refusal := refusals.get(pending.subject)):
            ended[name] = _ended(cluster, name, pending, IntentState.REFUSED, now_ms, refusal.rule)
        elif owners is not None and pending.kind == IntentKind.DRAIN:
            if pending.subject not in owners:
                ended[name] = _ended(cluster, name, pending, IntentState.DONE, now_ms)
        elif 0 < pending.until_ms <= now_ms:
            why = _cause(plan) if not granted else "it was begun, and not finished in time"
            ended[name] = _ended(cluster, name, pending, IntentState.EXPIRED, now_ms, problem=why)
        elif granted and not pending.decided:
            decided[name] = replace(pending, decided=True)
    told = _without(replace(memory, pending=memory.pending | decided), ended)
    return told._replace(memory=_unasked(told.memory, memory.pending, ended))


def is_declined(change: Change, before: Record | None) -> bool:
    """Whether the owner keeps a bundle whole that it was to split."""
    splitting = before is not None and before.state is State.SPLITTING
    return splitting and change.event is Event.DECLINE


def _is_done(pending: Pending, record: Record) -> bool:
    match pending.kind:
        case IntentKind.UNLOAD:
            left = record.state in (State.FREE, State.DELETED)
            moved = record.state is State.OWNED and record.owner != pending.source
            return record.epoch > pending.epoch and (left or moved)
        case IntentKind.SPLIT:
            return record.state is State.DELETED
        case _:
            return record.state is not State.QUARANTINED


def _cause(plan: Plan) -> str:
    rule = "" if plan.skipped is None else f": {plan.skipped.value}"
    return f"no round could decide it in time{rule}"


def _owners(records: Mapping[str, Record]) -> set[str]:
    """The brokers that own a bundle which can leave them."""
    return {
        record.owner
        for bundle, record in records.items()
        if record.owner is not None
        and record.state is not State.DELETED
        and not is_monitoring(bundle)
    }


def _unasked(memory: Memory, pending: Mapping[str, Pending], ended: Collection[str]) -> Memory:
    """The memory without requests whose intents have ended."""
    gone = {pending[name].subject for name in ended}
    state = memory.round
    if not gone & (state.asked.keys() | state.asked_moves.keys()):
        return memory
    asked = {bundle: each for bundle, each in state.asked.items() if bundle not in gone}
    moves = {bundle: to for bundle, to in state.asked_moves.items() if bundle not in gone}
    return replace(memory, round=replace(state, asked=asked, asked_moves=moves))


def _lift_drain(memory: Memory, intent: Intent, now_ms: int) -> Told:
    ended = {
        name: _ended(
            intent.cluster, name, pending, IntentState.EXPIRED, now_ms,
            problem=f"{intent.broker} is used again",
        )
        for name, pending in memory.pending.items()
        if pending.kind == IntentKind.DRAIN and pending.subject == intent.broker
    }  # fmt: skip
    return _without(memory, ended)


def _without(memory: Memory, ended: Mapping[str, IntentOutcome]) -> Told:
    if not ended:
        return Told(memory)
    pending = {name: each for name, each in memory.pending.items() if name not in ended}
    return Told(replace(memory, pending=pending), tuple(ended.values()))


def _remembered(memory: Memory, intent: Intent, outcome: IntentOutcome) -> Told:
    if intent.kind in OF_THE_WATCHER:
        return Told(memory)
    ids = {**memory.intents, intent.id: fingerprint(intent)}
    kept = dict(list(ids.items())[-REMEMBERED:])
    return Told(replace(memory, intents=kept), (outcome,))


def _outcome(
    intent: Intent, state: IntentState, at_ms: int, rule: str = "", problems: tuple[str, ...] = ()
) -> IntentOutcome:
    return IntentOutcome(
        cluster=intent.cluster,
        id=intent.id,
        kind=intent.kind,
        state=state,
        at=at_ms,
        rule=rule,
        problems=problems,
    )


def _ended(  # noqa: PLR0913 - an outcome's members
    cluster: str,
    name: str,
    pending: Pending,
    state: IntentState,
    at_ms: int,
    rule: str = "",
    problem: str = "",
) -> IntentOutcome:
    return IntentOutcome(
        cluster=cluster,
        id=name,
        kind=IntentKind(pending.kind),
        state=state,
        at=at_ms,
        rule=rule,
        problems=(problem,) if problem else (),
    )
