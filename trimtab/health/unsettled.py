"""Remembers which bundles are unserved or about to change, since when, and when to look at them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from trimtab.ownership import State
from trimtab.settings import Settings
from trimtab.settings.words import AT_LOOKUP
from trimtab.state.in_flight import void
from trimtab.state.memory import Memory
from trimtab.view import is_monitoring
from trimtab.wire.ownership import Record

RETRY_MS: Final = 1000
"""Time after which a repair that could not be made is tried again."""

_ENDED: Final = frozenset({State.DELETED, State.QUARANTINED})


def is_unsettled(bundle: str, record: Record, gone: Collection[str]) -> bool:
    """Whether a bundle is unserved or about to change; never a monitoring one, tied to a broker."""
    return (
        record.state not in _ENDED
        and (record.state is not State.OWNED or record.owner in gone)
        and not is_monitoring(bundle)
    )


def is_unserved(record: Record, gone: Collection[str]) -> bool:
    """Whether no broker serves a bundle with this unsettled record."""
    return record.state in (State.FREE, State.ASSIGNING) or record.owner in gone


def due_ms(record: Record, since_ms: int, gone: Collection[str], settings: Settings) -> int:
    """When an unsettled record that was learnt at ``since_ms`` must be repaired."""
    if record.state is State.FREE or record.owner in gone:
        return since_ms
    return since_ms + round(settings.round.move_deadline * 1000)


def waits_for_lookup(record: Record, settings: Settings) -> bool:
    """Whether the bundle is to stay without an owner until somebody asks for it."""
    return record.state is State.FREE and settings.round.assignment == AT_LOOKUP


def note_records(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> Memory:
    """The memory after these new records: which are unsettled, and when to look at them."""
    liveness = memory.liveness
    since = {bundle: ms for bundle, ms in memory.unsettled.items() if bundle not in records}
    times = [memory.repair_ms]
    waiting = since or memory.readmitted or memory.created or liveness.draining
    if not waiting and memory.repair_ms > now_ms:
        # Everything that was to be looked at has settled.
        times = return_times(memory, settings, now_ms)
    for bundle, record in records.items():
        if is_unsettled(bundle, record, liveness.gone):
            since[bundle] = now_ms
            if not waits_for_lookup(record, settings):
                times.append(due_ms(record, now_ms, liveness.gone, settings))
        elif record.owner in liveness.draining:
            times.append(now_ms + RETRY_MS)
    return replace(memory, unsettled=since, repair_ms=min(filter(None, times), default=0))


def learn_records(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> Memory:
    """The memory with exactly the unsettled records and the times they were learnt; without the
    flights that a loss has made void, and without brokers lost long ago."""
    gone = memory.liveness.gone
    since = {
        bundle: memory.unsettled.get(bundle, now_ms)
        for bundle, record in records.items()
        if is_unsettled(bundle, record, gone)
    }
    quarantined = {b: r for b in memory.readmitted if (r := records.get(b)) is not None}
    readmitted = tuple(b for b, r in quarantined.items() if r.state is State.QUARANTINED)
    flights = {
        bundle: flight
        for bundle, flight in memory.in_flight.items()
        if not void(flight, records.get(bundle), gone)
    }
    owners = {records[bundle].owner for bundle in since}
    return replace(
        memory,
        unsettled=since,
        readmitted=readmitted,
        created=tuple(bundle for bundle in memory.created if bundle not in records),
        in_flight=flights,
        liveness=memory.liveness.without_strangers(owners, now_ms - settings.round.forget * 1000),
    )


def list_expected(memory: Memory, records: Mapping[str, Record]) -> dict[str, str]:
    """Bundle to broker, for bundles given to a broker that has not confirmed service yet."""
    given = {
        bundle: owner
        for bundle in memory.unsettled
        if (record := records[bundle]).state is State.ASSIGNING and (owner := record.owner)
    }
    flights = memory.unsettled.keys() & memory.in_flight.keys()
    return given | {bundle: memory.in_flight[bundle].destination for bundle in flights}


def return_times(memory: Memory, settings: Settings, now_ms: int) -> list[int]:
    """When brokers that are held back may get bundles again."""
    held_back = memory.liveness.held_back(settings.flapping)
    return [until for until in held_back.values() if until > now_ms]
