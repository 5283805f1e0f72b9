"""Compares what moves were predicted to do to both brokers' usage with what happened.

a round's moves are one plan:
  note the predicted usage of every broker it touches, without it and after all moves have landed
  wait for its moves: each lands; fails, if it ends elsewhere while both brokers are present; is
    lost with one of them; or expires
  from half a settling time after the last one ended, add up what both brokers report
  close it once the settling time has passed and every broker has reported
What later plans bring to a broker is subtracted from its realised usage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from trimtab.ownership import Event, State
from trimtab.plan import LandedMove
from trimtab.settings import Settings
from trimtab.state.ledger_state import Awaited, Ledger, MoveOutcome, Noted, Side
from trimtab.wire.ownership import Change

_PATIENCE: Final = 10
"""Settling times, and move deadlines, after which waiting ends."""


class BundlePlace(NamedTuple):
    """The names of a bundle's broker, and of the one where it will be."""

    owner: str
    intended: str


def time_handovers(ledger: Ledger, changes: Iterable[Change]) -> Ledger:
    """The ledger with the times of hand-overs from the journal."""
    open_at = {b: at for at, plan in enumerate(ledger.plans) for b in plan.moves}
    if not open_at:
        return ledger
    stamped: list[dict[str, Awaited]] = [{} for _ in ledger.plans]
    for change in sorted(changes, key=lambda change: change.record.epoch):
        at = open_at.get(change.bundle)
        if at is not None:
            bundle, known = change.bundle, stamped[at]
            known[bundle] = _stamped(known.get(bundle, ledger.plans[at].moves[bundle]), change)
    plans = (
        replace(plan, moves=plan.moves | newer) if newer else plan
        for plan, newer in zip(ledger.plans, stamped, strict=True)
    )
    return replace(ledger, plans=tuple(plans))


def _stamped(move: Awaited, change: Change) -> Awaited:
    record = change.record
    if record.epoch <= (move.generation, move.counter):
        return move
    if change.event is Event.TRANSFER and record.destination == move.destination:
        return replace(move, began_ms=record.since)
    serves = record.state is State.OWNED and record.owner == move.destination
    if serves and change.event is Event.SERVE and move.began_ms:
        return replace(move, served_ms=record.since)
    return move


def list_awaited(ledger: Ledger) -> set[str]:
    """The bundles whose moves have not ended."""
    return {b for plan in ledger.plans for b, m in plan.moves.items() if m.outcome is None}


def follow_moves(
    ledger: Ledger,
    places: Mapping[str, BundlePlace],
    here: Collection[str],
    settings: Settings,
    now_ms: int,
) -> Ledger:
    """The ledger with the outcomes of its moves; ``places`` has the awaited bundles that are on the
    available brokers, ``here``."""
    patience_ms = 1000 * _PATIENCE * (settings.ledger.settle + settings.round.move_deadline)
    plans: list[Noted] = []
    for plan in ledger.plans:
        late = now_ms - plan.at_ms >= patience_ms
        ended = {
            bundle: outcome
            for bundle, move in plan.moves.items()
            if move.outcome is None
            and (outcome := _outcome(move, places.get(bundle), here, late)) is not None
        }
        plans = [_shift(earlier, plan, ended) for earlier in plans]
        plans.append(_ended(plan, ended, here, now_ms))
    return replace(ledger, plans=tuple(plans))


def _outcome(
    move: Awaited, place: BundlePlace | None, here: Collection[str], late: bool
) -> MoveOutcome | None:
    if move.source not in here or move.destination not in here:
        return MoveOutcome.LOST
    if place is None or place.owner != place.intended:
        return MoveOutcome.EXPIRED if late else None
    return MoveOutcome.LANDED if place.owner == move.destination else MoveOutcome.FAILED


def _shift(earlier: Noted, plan: Noted, ended: Mapping[str, MoveOutcome]) -> Noted:
    """An earlier plan with its sides shifted by a later plan's newly landed moves."""
    landed = (plan.moves[b] for b, outcome in ended.items() if outcome is MoveOutcome.LANDED)
    return _moved(earlier, landed, 1.0)


def _ended(
    plan: Noted, ended: Mapping[str, MoveOutcome], here: Collection[str], now_ms: int
) -> Noted:
    if plan.sides.keys() - here:
        plan = replace(plan, sides={b: s for b, s in plan.sides.items() if b in here})
    if not ended:
        return plan
    missing = [plan.moves[b] for b, outcome in ended.items() if outcome is not MoveOutcome.LANDED]
    plan = _moved(plan, missing, -1.0)
    known = {b: replace(plan.moves[b], outcome=outcome) for b, outcome in ended.items()}
    moves = plan.moves | known
    done = all(move.outcome is not None for move in moves.values())
    return replace(plan, moves=moves, ended_ms=now_ms if done else 0)


def _moved(plan: Noted, moves: Iterable[Awaited], times: float) -> Noted:
    sides = dict(plan.sides)
    for move in moves:
        for broker, by in ((move.source, -move.taken), (move.destination, move.added)):
            if broker in sides:
                sides[broker] = replace(sides[broker], shift=sides[broker].shift + times * by)
    return replace(plan, sides=sides)


class BrokerReport(NamedTuple):
    """One broker's report."""

    reported_ms: int
    used: float
    traffic: float
    """Bytes/s, with messages converted to bytes."""


def count_reports(ledger: Ledger, reports: Mapping[str, BrokerReport], settle: float) -> Ledger:
    """The ledger with brokers' reports counted; ``settle`` is in seconds."""
    plans = [
        replace(plan, sides={b: _count(plan, b, reports, settle) for b in plan.sides})
        if plan.ended_ms
        else plan
        for plan in ledger.plans
    ]
    return replace(ledger, plans=tuple(plans))


def _count(plan: Noted, broker: str, reports: Mapping[str, BrokerReport], settle: float) -> Side:
    side, report = plan.sides[broker], reports[broker]
    since = max(side.reported_ms + 1, plan.ended_ms + round(500 * settle))
    if report.reported_ms < since:
        return side
    return replace(
        side,
        reported_ms=report.reported_ms,
        reports=side.reports + 1,
        used=side.used + report.used,
        shifted=side.shifted + side.shift,
        traffic=side.traffic + report.traffic,
    )


def due(plan: Noted, settings: Settings, now_ms: int) -> bool:
    """Whether to close a plan now."""
    if not plan.ended_ms:
        return False
    settle_ms = 1000 * settings.ledger.settle
    since = now_ms - plan.ended_ms
    heard_all = all(side.reports for side in plan.sides.values())
    return (since >= settle_ms and heard_all) or since >= _PATIENCE * settle_ms or not plan.landed()


def settle_moves(plan: Noted, now_ms: int) -> tuple[Sequence[LandedMove], dict[str, int]]:
    """A closed plan's moves with both sides known, and the counts of all outcomes."""
    landed, closed = [], dict.fromkeys(MoveOutcome, 0)
    for bundle, move in plan.moves.items():
        sides = plan.sides.get(move.source), plan.sides.get(move.destination)
        left, joined = (side.forecast if side and side.reports else None for side in sides)
        outcome = move.outcome or MoveOutcome.EXPIRED
        if outcome is MoveOutcome.LANDED and left and joined:
            seconds = (now_ms - plan.at_ms) / 1000
            landed.append(
                LandedMove(bundle, move.source, move.destination, plan.round, seconds, left, joined)
            )
        elif outcome is MoveOutcome.LANDED:
            outcome = MoveOutcome.LOST if None in sides else MoveOutcome.EXPIRED
        closed[outcome] += 1
    return landed, {outcome.value: count for outcome, count in closed.items() if count}
