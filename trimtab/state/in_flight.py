"""Changes issued but not yet journalled: each is kept from its round until its record is seen, a
loss makes it void, or ``round.move_deadline`` has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trimtab.ownership import State
from trimtab.plan import Plan
from trimtab.settings import Settings
from trimtab.settings.words import AT_LOOKUP
from trimtab.wire.ownership import Record

_UNASSIGNED: Final = frozenset({State.RELEASING, State.FREE})


@dataclass(frozen=True, slots=True)
class Flight:
    """A change issued but not yet journalled; forgotten at ``until_ms`` (batch timestamp)."""

    destination: str
    """The bundle's next owner; its present owner if it is split, merged or kept."""
    counter: int
    """Epoch counter of the record it was based on; any later change of the record ends it."""
    generation: int
    until_ms: int
    issued_ms: int = 0
    at_lookup: bool = False
    """Whether the next lookup assigns it, to the broker that is best then; ``destination`` is only
    proposed."""


def launch_flights(
    plan: Plan, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> dict[str, Flight]:
    """A flight for everything the plan changes, by bundle."""
    until = now_ms + round(settings.round.move_deadline * 1000)
    changes = [(split.bundle, split.broker, split.epoch) for split in plan.splits]
    for merge in plan.merges:
        changes.append((merge.bundle, merge.broker, merge.epoch))
        changes.append((merge.neighbour, merge.broker, merge.neighbour_epoch))
    for repair in plan.repairs:
        owner = repair.broker or records[repair.bundle].owner or ""
        changes.append((repair.bundle, owner, repair.epoch))
    flights = {
        bundle: Flight(owner, epoch.counter, epoch.generation, until, now_ms)
        for bundle, owner, epoch in changes
    }
    at_lookup = settings.round.assignment == AT_LOOKUP
    for move in plan.moves:
        counter, generation = move.epoch.counter, move.epoch.generation
        flights[move.bundle] = Flight(
            move.destination, counter, generation, until, now_ms, at_lookup
        )
    return flights


def has_landed(flight: Flight, record: Record) -> bool:
    """Whether ``record`` is later than the one the flight was based on; for one that a lookup is to
    assign, whether that has happened."""
    if flight.at_lookup and record.state in _UNASSIGNED:
        return False
    return record.epoch > (flight.generation, flight.counter)


def list_proposed(flights: Mapping[str, Flight]) -> dict[str, str]:
    """Bundle to its planned broker, of the bundles that the next lookup assigns."""
    return {bundle: each.destination for bundle, each in flights.items() if each.at_lookup}


def void(flight: Flight, record: Record | None, gone: Mapping[str, int]) -> bool:
    """Whether the flight has no effect: its destination is lost, or its owner was lost after it was
    issued."""
    if flight.destination in gone:
        return True
    return record is not None and flight.issued_ms < gone.get(record.owner or "", 0)
