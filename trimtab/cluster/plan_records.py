"""Turns a plan's changes into parts of the round's record; ``why`` is a sentence for people."""

from __future__ import annotations

from typing import Final

from trimtab.plan import Forecast, Held, LandedMove, Merge, Move, Refusal, Repair, Split
from trimtab.settings import SplitSettings
from trimtab.wire.command import Division
from trimtab.wire.planned import (
    ForecastRecord,
    HeldChanges,
    PlannedMerge,
    PlannedMove,
    PlannedRepair,
    PlannedSplit,
    RefusedMove,
    SettledMove,
)

_MOST: Final = 1000
"""Held changes of each kind that a record lists."""


def record_move(move: Move, why: str) -> PlannedMove:
    return PlannedMove(
        bundle=move.bundle,
        source=move.source,
        destination=move.destination,
        reason=move.reason,
        epoch=move.epoch,
        why=why,
    )


def record_merge(merge: Merge, why: str) -> PlannedMerge:
    return PlannedMerge(
        bundle=merge.bundle,
        neighbour=merge.neighbour,
        broker=merge.broker,
        reason=merge.reason,
        epoch=merge.epoch,
        neighbour_epoch=merge.neighbour_epoch,
        why=why,
    )


def record_refusal(refusal: Refusal) -> RefusedMove:
    return RefusedMove(
        bundle=refusal.bundle,
        source=refusal.source,
        rule=refusal.rule,
        destination=refusal.destination,
    )


def record_split(split: Split, why: str) -> PlannedSplit:
    return PlannedSplit(
        bundle=split.bundle,
        broker=split.broker,
        reason=split.reason,
        epoch=split.epoch,
        why=why,
        algorithm=split.algorithm,
        positions=split.positions,
    )


def record_held(held: Held) -> HeldChanges:
    """What the round held back, as far as a record lists it."""
    return HeldChanges(
        moves=tuple(record_move(move, "") for move in held.moves[:_MOST]),
        splits=tuple(record_split(split, "") for split in held.splits[:_MOST]),
        merges=tuple(record_merge(merge, "") for merge in held.merges[:_MOST]),
        changes=len(held.changes),
    )


def record_repair(repair: Repair, why: str) -> PlannedRepair:
    return PlannedRepair(
        bundle=repair.bundle,
        event=repair.event,
        broker=repair.broker,
        reason=repair.reason,
        epoch=repair.epoch,
        why=why,
    )


def record_settled(move: LandedMove) -> SettledMove:
    return SettledMove(
        bundle=move.bundle,
        source=move.source,
        destination=move.destination,
        round=move.round,
        seconds=move.seconds,
        left=_forecast(move.left),
        joined=_forecast(move.joined),
    )


def _forecast(of: Forecast) -> ForecastRecord:
    return ForecastRecord(before=of.before, predicted=of.predicted, realised=of.realised)


def record_division(settings: SplitSettings) -> Division:
    return Division(
        algorithm=settings.algorithm,
        max_rate=settings.max_rate,
        max_throughput=settings.max_throughput,
        difference=settings.difference,
    )
