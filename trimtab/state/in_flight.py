"""Changes issued but not yet journalled: each is kept from its round until its record is seen, a
loss makes it void, or ``round.move_deadline`` has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.plan import Plan
from trimtab.settings import Settings
from trimtab.wire.ownership import Record


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


def launch_flights(
    plan: Plan, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> dict[str, Flight]:
    """A flight for everything the plan changes, by bundle."""
    until = now_ms + round(settings.round.move_deadline * 1000)
    changes = [(move.bundle, move.destination, move.epoch) for move in plan.moves]
    changes += [(split.bundle, split.broker, split.epoch) for split in plan.splits]
    for merge in plan.merges:
        changes.append((merge.bundle, merge.broker, merge.epoch))
        changes.append((merge.neighbour, merge.broker, merge.neighbour_epoch))
    for repair in plan.repairs:
        owner = repair.broker or records[repair.bundle].owner or ""
        changes.append((repair.bundle, owner, repair.epoch))
    return {
        bundle: Flight(owner, epoch.counter, epoch.generation, until, now_ms)
        for bundle, owner, epoch in changes
    }


def has_landed(flight: Flight, record: Record) -> bool:
    """Whether ``record`` is later than the one the flight was based on."""
    return record.epoch > (flight.generation, flight.counter)


def void(flight: Flight, record: Record | None, gone: Mapping[str, int]) -> bool:
    """Whether it has no effect: its destination was lost, or its owner since it was issued."""
    if flight.destination in gone:
        return True
    return record is not None and flight.issued_ms < gone.get(record.owner or "", 0)
