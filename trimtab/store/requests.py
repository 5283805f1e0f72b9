"""From a round's record to requests for the ownership store, and from its answers to commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour, Transition, TransitionOutcome
from trimtab.wire.rows import (
    PlannedMerge,
    PlannedMove,
    PlannedRepair,
    PlannedSplit,
    RoundRecord,
)

LONGEST_NAME: Final = 2048
"""Characters of a bundle's name: a broker may claim any, and Kafka must take what tells of it."""


@dataclass(frozen=True, slots=True)
class BatchId:
    """Names a batch for ever: batch numbers alone restart with a new checkpoint."""

    query: str
    batch: int


Planned = PlannedMove | PlannedSplit | PlannedMerge | PlannedRepair


def transitions(record: RoundRecord, batch: BatchId) -> tuple[Transition, ...]:
    """One a move, a split, a merge and a repair, in the plan's order; a repeated batch asks with
    equal ids.

    Nothing is asked for by a round that only observes, or of a bundle of an absurd name.
    """
    if record.observe_only:
        return ()
    name = f"{record.cluster}/{batch.query}/{batch.batch}"
    planned: tuple[Planned, ...] = (
        *record.moves,
        *record.splits,
        *record.merges,
        *record.repairs,
    )
    return tuple(
        _transition(record, f"{name}/{i}", each)
        for i, each in enumerate(planned)
        if len(each.bundle) <= LONGEST_NAME
    )


class _Asked(NamedTuple):
    """What a part of a plan asks of the store, and which brokers it tells."""

    event: Event
    told: tuple[tuple[str, CommandKind], ...] = ()
    source: str | None = None
    broker: str | None = None
    """Who is to have the bundle."""
    neighbour: Neighbour | None = None


def _asked(planned: Planned) -> _Asked:
    match planned:
        case PlannedMove(source=source, destination=to):
            # The destination first: it is to be warm by the time the source stops.
            told = (to, CommandKind.PREPARE), (source, CommandKind.TRANSFER)
            return _Asked(Event.TRANSFER, told, source, to)
        case PlannedSplit(broker=owner):
            return _Asked(Event.SPLIT, ((owner, CommandKind.SPLIT),), owner)
        case PlannedMerge(broker=owner):
            other = Neighbour(planned.neighbour, Epoch(*planned.neighbour_epoch))
            return _Asked(Event.MERGE, ((owner, CommandKind.MERGE),), owner, neighbour=other)
        case PlannedRepair(broker=to):
            owns = () if to is None else ((to, CommandKind.OWN),)
            return _Asked(Event(planned.event), owns, broker=to)


def _transition(record: RoundRecord, name: str, planned: Planned) -> Transition:
    asked = _asked(planned)
    commands = tuple(
        Command(
            id=f"{name}/{kind.value}",
            cluster=record.cluster,
            broker=broker,
            kind=kind,
            bundle=planned.bundle,
            source=asked.source,
            destination=asked.broker if asked.event is Event.TRANSFER else None,
            division=record.division if kind is CommandKind.SPLIT else None,
            neighbour=asked.neighbour and asked.neighbour.bundle,
            reason=planned.reason,
            plan=f"{record.cluster}/{record.round}",
            why=planned.why,
        )
        for broker, kind in asked.told
    )
    return Transition(
        id=name,
        bundle=planned.bundle,
        event=asked.event,
        expect=Epoch(*planned.epoch),
        broker=asked.broker,
        neighbour=asked.neighbour,
        commands=commands,
        within_ms=record.move_deadline_ms if commands else 0,
    )


def issue_commands(
    requests: Iterable[Transition], outcomes: Iterable[TransitionOutcome]
) -> Iterator[Command]:
    """The accepted requests' commands, stamped as the script stamped the brokers' copies."""
    for request, outcome in zip(requests, outcomes, strict=True):
        if outcome.accepted and outcome.record is not None:
            epoch, since = outcome.record.epoch, outcome.record.since
            deadline = since + request.within_ms if request.within_ms else 0
            for command in request.commands:
                yield command.stamped(epoch, since, deadline)
