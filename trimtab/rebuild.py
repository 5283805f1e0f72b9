"""What ownership was, put together again after the store has forgotten some of it.

ignore what no job can have written: a name that is no range, a generation out of reach
where a generation is not below the job's own: the job claims a higher one and begins again
for each bundle: the record with the highest epoch holds, whoever has it
  the store itself, the journal topic, or a broker that saw it
where two that stand overlap, the one with the lower epoch is deleted
  it was divided or merged, and nobody is left who saw that
what was part of any bundle, and is part of none that stands, becomes a free bundle
  it was divided or merged, and nobody is left who saw into what
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from trimtab.model import (
    NO_EPOCH,
    Epoch,
    HashRange,
    is_bundle,
    namespace_of,
    parse_bundle,
)
from trimtab.ownership import State
from trimtab.wire.command import LARGEST
from trimtab.wire.ownership import Record

Records = Mapping[str, Record]
"""Bundle to record."""


REACH: Final = 1 << 40
"""How far above the job's own generation a record's is believed. A generation is a place in a
topic that grows by a few records a second: a thousand years of them are 2^37. Higher: one forged
record brings the numbers nearer to their end."""

HIGHEST: Final = 1 << 52
"""No generation and no counter is believed from here on: up to 2^53 Lua counts exactly, and what
follows a record has a higher epoch than it."""


def believed(epoch: Epoch, generation: int) -> bool:
    """Whether a job can have given this epoch out, as one sees it that claimed ``generation``."""
    return epoch.generation <= generation + REACH and max(epoch) < HIGHEST and min(epoch) >= 0


def doubtful(records: Records, generation: int) -> dict[str, str]:
    """What no rebuild takes from ``records``: bundle to why."""
    found: dict[str, str] = {}
    for bundle, record in records.items():
        if not believed(record.epoch, generation):
            found[bundle] = f"its epoch {tuple(record.epoch)} is beyond any that was given out"
        elif not 0 <= record.since < LARGEST:
            found[bundle] = f"its time {record.since} is none"
        elif not is_bundle(bundle):
            found[bundle] = "its name is not a range of the ring"
    return found


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the store lacks."""

    records: dict[str, Record]
    """Newer than what the store has."""
    unjournalled: frozenset[str]
    """Those of them that the journal topic lacks."""
    newest_generation: int
    """The highest that any record has. Where it is not below the job's own, nothing may be
    restored: the job claims one above it first, or no request could change those records."""


def rebuilt(
    stored: Records,
    journalled: Records,
    asserted: Iterable[Records],
    generation: int,
    unreadable: Iterable[str] = (),
) -> Rebuilt:
    """What to restore; ``generation`` is one that nobody has used yet.

    ``unreadable`` are bundles whose stored record cannot be read. What is `doubtful` is left out;
    a bundle of which the store has nothing better, and nobody else anything, becomes a free one.
    Equal inputs in any order give equal results: an epoch is given out once.
    """
    lost = {*doubtful(stored, generation), *unreadable}
    stored, journalled = _sound(stored, generation), _sound(journalled, generation)
    newest = dict(stored)
    for known in (journalled, *(_sound(said, generation) for said in asserted)):
        for bundle, record in known.items():
            if record.epoch > _epoch(newest, bundle):
                newest[bundle] = record
    newest_generation = max((record.epoch.generation for record in newest.values()), default=0)
    for bundle in filter(is_bundle, lost - newest.keys()):
        newest[bundle] = _record(State.DELETED, generation, 1)
    newest |= _untangled(newest, generation)
    lacking = {b: r for b, r in sorted(newest.items()) if r.epoch > _epoch(stored, b)}
    unjournalled = (b for b, r in lacking.items() if r.epoch > _epoch(journalled, b))
    return Rebuilt(lacking, frozenset(unjournalled), newest_generation)


def _sound(records: Records, generation: int) -> Records:
    out = doubtful(records, generation)
    return {b: r for b, r in records.items() if b not in out} if out else records


def _epoch(records: Records, bundle: str) -> Epoch:
    record = records.get(bundle)
    return NO_EPOCH if record is None else record.epoch


def _untangled(records: Records, generation: int) -> dict[str, Record]:
    """New records where those of a namespace overlap or leave a hole; nearly always none."""
    changed: dict[str, Record] = {}
    for namespace, group in groupby(sorted(records), namespace_of):
        bundles = list(group)
        kept, fallen = _sifted(records, bundles)
        for bundle in fallen:
            counter = records[bundle].epoch.counter + 1
            changed[bundle] = _record(State.DELETED, generation, counter)
        for gap in _gaps(sorted(parse_bundle(bundle)[1] for bundle in bundles), kept):
            name = f"{namespace}/{gap}"
            above = 1 + max(
                record.epoch.counter
                for bundle in bundles
                for record in (records[bundle], changed.get(bundle, records[bundle]))
                if _overlap(parse_bundle(bundle)[1], gap)
            )
            changed[name] = _record(State.FREE, generation, above)
    return changed


def _record(state: State, generation: int, counter: int) -> Record:
    return Record(state=state, epoch=Epoch(generation, counter), by="rebuild")


def _overlap(one: HashRange, other: HashRange) -> bool:
    return one.low < other.high and other.low < one.high


def _sifted(records: Records, bundles: list[str]) -> tuple[list[HashRange], list[str]]:
    """The ranges that stand, ascending, and the bundles that give way to a higher epoch."""
    standing = [bundle for bundle in bundles if records[bundle].state is not State.DELETED]
    spans = [parse_bundle(bundle)[1] for bundle in standing]
    if all(before.high <= after.low for before, after in pairwise(spans)):
        return spans, []
    kept: list[HashRange] = []
    fallen: list[str] = []
    for bundle in sorted(standing, key=lambda b: (records[b].epoch, b), reverse=True):
        span = parse_bundle(bundle)[1]
        if any(_overlap(span, other) for other in kept):
            fallen.append(bundle)
        else:
            kept.append(span)
    return sorted(kept), fallen


def _gaps(known: Sequence[HashRange], kept: Sequence[HashRange]) -> list[HashRange]:
    """What ``known`` covers and ``kept`` does not; both ascend, ``kept`` without overlaps."""
    gaps: list[HashRange] = []
    at, row = 0, 0
    for span in known:
        at = max(at, span.low)
        while at < span.high:
            while row < len(kept) and kept[row].high <= at:
                row += 1
            covered = row < len(kept) and kept[row].low <= at
            end = kept[row].high if covered else kept[row].low if row < len(kept) else span.high
            if not covered:
                gaps.append(HashRange(at, min(end, span.high)))
            at = min(end, span.high) if not covered else end
    return gaps
