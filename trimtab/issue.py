"""From a round's record to requests for the ownership store, and from its answers to commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.wire.command import Command, Kind
from trimtab.wire.ownership import Neighbour, Outcome, Transition
from trimtab.wire.rows import (
    PlannedMerge,
    PlannedMove,
    PlannedRepair,
    PlannedSplit,
    RoundRecord,
)


@dataclass(frozen=True, slots=True)
class BatchId:
    """Names a batch for ever: batch numbers alone restart with a new checkpoint."""

    query: str
    batch: int


def transitions(record: RoundRecord, batch: BatchId) -> tuple[Transition, ...]:
    """One a move, a split, a merge and a repair, in the plan's order; a repeated batch asks with
    equal ids.

    Nothing is asked for by a round that only observes.
    """
    if record.observe_only:
        return ()
    moves = [_transfer(record, batch, i, move) for i, move in enumerate(record.moves)]
    merges = len(moves) + len(record.splits)
    repairs = merges + len(record.merges)
    return (
        *moves,
        *(_division(record, batch, i, each) for i, each in enumerate(record.splits, len(moves))),
        *(_merge(record, batch, i, each) for i, each in enumerate(record.merges, merges)),
        *(_repair(record, batch, i, each) for i, each in enumerate(record.repairs, repairs)),
    )


def _transfer(record: RoundRecord, batch: BatchId, index: int, move: PlannedMove) -> Transition:
    name = f"{record.cluster}/{batch.query}/{batch.batch}/{index}"
    # The destination first: it is to be warm by the time the source stops.
    told = {move.destination: Kind.PREPARE, move.source: Kind.TRANSFER}
    commands = tuple(
        Command(
            id=f"{name}/{kind.value}",
            cluster=record.cluster,
            broker=broker,
            kind=kind,
            bundle=move.bundle,
            source=move.source,
            destination=move.destination,
            reason=move.reason,
            plan=f"{record.cluster}/{record.round}",
            why=move.why,
        )
        for broker, kind in told.items()
    )
    return Transition(
        id=name,
        bundle=move.bundle,
        event=Event.TRANSFER,
        expect=Epoch(*move.epoch),
        broker=move.destination,
        commands=commands,
        within_ms=record.move_deadline_ms,
    )


def _division(record: RoundRecord, batch: BatchId, index: int, split: PlannedSplit) -> Transition:
    name = f"{record.cluster}/{batch.query}/{batch.batch}/{index}"
    command = Command(
        id=f"{name}/{Kind.SPLIT.value}",
        cluster=record.cluster,
        broker=split.broker,
        kind=Kind.SPLIT,
        bundle=split.bundle,
        source=split.broker,
        reason=split.reason,
        plan=f"{record.cluster}/{record.round}",
        why=split.why,
        division=record.division,
    )
    return Transition(
        id=name,
        bundle=split.bundle,
        event=Event.SPLIT,
        expect=Epoch(*split.epoch),
        commands=(command,),
        within_ms=record.move_deadline_ms,
    )


def _merge(record: RoundRecord, batch: BatchId, index: int, merge: PlannedMerge) -> Transition:
    name = f"{record.cluster}/{batch.query}/{batch.batch}/{index}"
    command = Command(
        id=f"{name}/{Kind.MERGE.value}",
        cluster=record.cluster,
        broker=merge.broker,
        kind=Kind.MERGE,
        bundle=merge.bundle,
        source=merge.broker,
        neighbour=merge.neighbour,
        reason=merge.reason,
        plan=f"{record.cluster}/{record.round}",
        why=merge.why,
    )
    return Transition(
        id=name,
        bundle=merge.bundle,
        event=Event.MERGE,
        expect=Epoch(*merge.epoch),
        neighbour=Neighbour(merge.neighbour, Epoch(*merge.neighbour_epoch)),
        commands=(command,),
        within_ms=record.move_deadline_ms,
    )


def _repair(record: RoundRecord, batch: BatchId, index: int, repair: PlannedRepair) -> Transition:
    name = f"{record.cluster}/{batch.query}/{batch.batch}/{index}"
    told = () if repair.broker is None else (repair.broker,)
    commands = tuple(
        Command(
            id=f"{name}/{Kind.OWN.value}",
            cluster=record.cluster,
            broker=broker,
            kind=Kind.OWN,
            bundle=repair.bundle,
            reason=repair.reason,
            plan=f"{record.cluster}/{record.round}",
            why=repair.why,
        )
        for broker in told
    )
    return Transition(
        id=name,
        bundle=repair.bundle,
        event=Event(repair.event),
        expect=Epoch(*repair.epoch),
        broker=repair.broker,
        commands=commands,
        within_ms=record.move_deadline_ms if commands else 0,
    )


def issued(requests: Iterable[Transition], outcomes: Iterable[Outcome]) -> Iterator[Command]:
    """The accepted requests' commands, stamped as the script stamped the brokers' copies."""
    for request, outcome in zip(requests, outcomes, strict=True):
        if outcome.accepted and outcome.record is not None:
            epoch, since = outcome.record.epoch, outcome.record.since
            deadline = since + request.within_ms if request.within_ms else 0
            for command in request.commands:
                yield command.stamped(epoch, since, deadline)
