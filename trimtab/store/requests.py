"""Turns a round's record into requests to the ownership store, and its answers into commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.model import LONGEST_NAME, Epoch
from trimtab.ownership import Event
from trimtab.settings.words import AT_LOOKUP
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.ownership import Neighbour, Refused, Transition, TransitionOutcome
from trimtab.wire.planned import PlannedMerge, PlannedMove, PlannedRepair, PlannedSplit
from trimtab.wire.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class BatchId:
    """A permanent name of a batch: batch numbers alone restart with a new checkpoint."""

    query: str
    batch: int


Planned = PlannedMove | PlannedSplit | PlannedMerge | PlannedRepair


def transitions(record: RoundRecord, batch: BatchId) -> tuple[Transition, ...]:
    """One request per move, split, merge and repair, in the plan's order; a repeated batch has
    equal ids.

    Rounds that only observe request nothing, and bundles with names over LONGEST_NAME get none.
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
        if len(each.bundle.encode()) <= LONGEST_NAME
    )


def is_of_a_broker(command: str) -> bool:
    """Whether a broker, not the job, made a command with this id.

    A broker's is the id of its request and the kind; the job's is cluster/query/batch/number/kind.
    """
    *name, kind = command.split("/")
    of_the_job = len(name) == 4 and name[2].isdecimal() and name[3].isdecimal()
    return kind == CommandKind.OWN and not of_the_job


class _Request(NamedTuple):
    """What one part of a plan requests from the store, and the commands to brokers."""

    event: Event
    commands: tuple[tuple[str, CommandKind], ...] = ()
    source: str | None = None
    broker: str | None = None
    """The broker that is to get the bundle."""
    neighbour: Neighbour | None = None


def _request_for(planned: Planned, assignment: str) -> _Request:
    match planned:
        case PlannedMove(source=source) if assignment == AT_LOOKUP:
            return _Request(Event.UNLOAD, ((source, CommandKind.UNLOAD),), source)
        case PlannedMove(source=source, destination=to):
            # The destination first: it should be warm when the source stops.
            commands = (to, CommandKind.PREPARE), (source, CommandKind.TRANSFER)
            return _Request(Event.TRANSFER, commands, source, to)
        case PlannedSplit(broker=owner):
            return _Request(Event.SPLIT, ((owner, CommandKind.SPLIT),), owner)
        case PlannedMerge(broker=owner):
            other = Neighbour(planned.neighbour, Epoch(*planned.neighbour_epoch))
            return _Request(Event.MERGE, ((owner, CommandKind.MERGE),), owner, neighbour=other)
        case PlannedRepair(broker=to):
            owns = () if to is None else ((to, CommandKind.OWN),)
            return _Request(Event(planned.event), owns, broker=to)


def _transition(record: RoundRecord, name: str, planned: Planned) -> Transition:
    request = _request_for(planned, record.assignment)
    commands = tuple(
        Command(
            id=f"{name}/{kind.value}",
            cluster=record.cluster,
            broker=broker,
            kind=kind,
            bundle=planned.bundle,
            source=request.source,
            destination=request.broker if request.event is Event.TRANSFER else None,
            division=_division(record, planned),
            neighbour=request.neighbour and request.neighbour.bundle,
            reason=planned.reason,
            plan=f"{record.cluster}/{record.round}",
            why=planned.why,
        )
        for broker, kind in request.commands
    )
    return Transition(
        id=name,
        bundle=planned.bundle,
        event=request.event,
        expect=Epoch(*planned.epoch),
        broker=request.broker,
        neighbour=request.neighbour,
        commands=commands,
        within_ms=record.move_deadline_ms if commands else 0,
    )


def _division(record: RoundRecord, planned: Planned) -> Division | None:
    if not isinstance(planned, PlannedSplit) or record.division is None:
        return None
    if not planned.algorithm:
        return record.division
    return record.division.asked(planned.algorithm, planned.positions)


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


def list_leaseless(
    requests: Iterable[Transition], outcomes: Iterable[TransitionOutcome]
) -> frozenset[str]:
    """The brokers that were refused a bundle because they hold no lease."""
    return frozenset(
        request.broker
        for request, outcome in zip(requests, outcomes, strict=True)
        if outcome.reason is Refused.NO_LEASE and request.broker is not None
    )
