"""Turns a plan's changes into parts of the round's record; ``why`` is a sentence for people.

A record has each field of its change under the same name, so a new field is written in both only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Final, TypeVar

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

R = TypeVar("R")

_MOST: Final = 1000
"""Held changes of each kind that a record lists."""


def record_move(move: Move, why: str) -> PlannedMove:
    return _record(PlannedMove, move, why=why)


def record_split(split: Split, why: str) -> PlannedSplit:
    return _record(PlannedSplit, split, why=why)


def record_merge(merge: Merge, why: str) -> PlannedMerge:
    return _record(PlannedMerge, merge, why=why)


def record_repair(repair: Repair, why: str) -> PlannedRepair:
    return _record(PlannedRepair, repair, why=why)


def record_refusal(refusal: Refusal) -> RefusedMove:
    return _record(RefusedMove, refusal)


def record_held(held: Held) -> HeldChanges:
    """What the round held back, as far as a record lists it."""
    return HeldChanges(
        moves=tuple(record_move(move, "") for move in held.moves[:_MOST]),
        splits=tuple(record_split(split, "") for split in held.splits[:_MOST]),
        merges=tuple(record_merge(merge, "") for merge in held.merges[:_MOST]),
        changes=len(held.changes),
    )


def record_settled(move: LandedMove) -> SettledMove:
    left, joined = _record(ForecastRecord, move.left), _record(ForecastRecord, move.joined)
    return _record(SettledMove, move, left=left, joined=joined)


def record_division(settings: SplitSettings) -> Division:
    return Division(
        algorithm=settings.algorithm,
        max_rate=settings.max_rate,
        max_throughput=settings.max_throughput,
        difference=settings.difference,
    )


def _record(
    kind: Callable[..., R],
    value: Move | Split | Merge | Repair | Refusal | LandedMove | Forecast,
    **further: object,
) -> R:
    """A record with the fields of ``value``, and ``further`` ones over them."""
    named = {each.name: getattr(value, each.name) for each in fields(value)}
    return kind(**named | further)
