"""Rebuilds ownership after the store has lost some of it.

ignore what no job can have written: a name that is no range, a generation out of reach
if a generation is not below the job's own: the job claims a higher one and starts again
for each bundle: the record with the highest epoch holds, from any source
  the store itself, the journal topic, or a broker that saw it
if two existing bundles overlap: the one with the lower epoch is deleted
  it was split or merged, and no source is left that saw this
a range that was part of any bundle, and is in no existing one, becomes a free bundle
  it was split or merged, and no source is left that saw the result
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
"""How far above the job's own generation a record's is believed. The first generation is a clock's
seconds since 1970, those of earlier versions are offsets in a topic that grows by a few records a
second: a thousand years are 2^37. Higher: one forged record brings the numbers nearer to their
end."""

HIGHEST: Final = 1 << 52
"""No generation or counter from here on is believed: Lua counts exactly up to 2^53, and what
follows a record has a higher epoch."""


def is_believable(epoch: Epoch, generation: int) -> bool:
    """Whether a job can have issued this epoch, judged by one that claimed ``generation``."""
    return epoch.generation <= generation + REACH and max(epoch) < HIGHEST and min(epoch) >= 0


def doubtful(records: Records, generation: int) -> dict[str, str]:
    """The entries of ``records`` that no rebuild uses: bundle to reason."""
    found: dict[str, str] = {}
    for bundle, record in records.items():
        if not is_believable(record.epoch, generation):
            found[bundle] = f"its epoch {tuple(record.epoch)} is beyond any that was given out"
        elif not 0 <= record.since < LARGEST:
            found[bundle] = f"its time {record.since} is none"
        elif not is_bundle(bundle):
            found[bundle] = "its name is not a range of the ring"
    return found


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The records that the store lacks."""

    records: dict[str, Record]
    """Records newer than the store's."""
    unjournalled: frozenset[str]
    """Bundles of ``records`` whose record the journal topic lacks."""
    newest_generation: int
    """The highest generation of any record. If it is not below the job's own, nothing may be
    restored: the job claims a higher one first, or no request could change those records."""
    behind: frozenset[str] = frozenset()
    """Bundles whose stored record is the newest, and which the journal topic lacks."""

    def invents(self, generation: int) -> bool:
        """Whether a record is of this generation, and so was made by the rebuild."""
        return any(record.epoch.generation == generation for record in self.records.values())


def rebuild_records(
    stored: Records,
    journalled: Records,
    asserted: Iterable[Records],
    generation: int,
    unreadable: Iterable[str] = (),
) -> Rebuilt:
    """What to restore; ``generation`` has not been used yet.

    ``unreadable`` are bundles whose stored record cannot be read. `doubtful` records are left out;
    a bundle with only such a record in the store, and none elsewhere, becomes a free one.
    Equal inputs in any order give equal results: an epoch is issued once.
    """
    lost = {*doubtful(stored, generation), *unreadable}
    stored, journalled = _sound(stored, generation), _sound(journalled, generation)
    newest = newest_of(stored, journalled, *(_sound(each, generation) for each in asserted))
    newest_generation = max((record.epoch.generation for record in newest.values()), default=0)
    for bundle in filter(is_bundle, lost - newest.keys()):
        newest[bundle] = _record(State.DELETED, generation, 1)
    newest |= _repaired(newest, generation)
    lacking = {b: r for b, r in sorted(newest.items()) if r.epoch > _epoch(stored, b)}
    unjournalled = (b for b, r in lacking.items() if r.epoch > _epoch(journalled, b))
    behind = (b for b, r in stored.items() if r.epoch > _epoch(journalled, b) and b not in lacking)
    return Rebuilt(lacking, frozenset(unjournalled), newest_generation, frozenset(behind))


def newest_of(*sources: Records) -> dict[str, Record]:
    """Each bundle's record with the highest epoch, of equal ones the first."""
    newest = dict[str, Record]()
    for known in sources:
        for bundle, record in known.items():
            if bundle not in newest or record.epoch > newest[bundle].epoch:
                newest[bundle] = record
    return newest


def _sound(records: Records, generation: int) -> Records:
    out = doubtful(records, generation)
    return {b: r for b, r in records.items() if b not in out} if out else records


def _epoch(records: Records, bundle: str) -> Epoch:
    record = records.get(bundle)
    return NO_EPOCH if record is None else record.epoch


def _repaired(records: Records, generation: int) -> dict[str, Record]:
    """New records for namespaces whose records overlap or leave a hole; rarely any."""
    changed: dict[str, Record] = {}
    # Not by name alone: bundles of t/n/0x1 stand between those of t/n.
    ordered = sorted(records, key=lambda bundle: (namespace_of(bundle), bundle))
    for namespace, group in groupby(ordered, namespace_of):
        bundles = list(group)
        kept, fallen = _sift(records, bundles)
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


def _sift(records: Records, bundles: list[str]) -> tuple[list[HashRange], list[str]]:
    """The ranges that remain, ascending, and the bundles that give way to a higher epoch."""
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
    """What ``known`` covers and ``kept`` does not; both ascending, ``kept`` without overlaps."""
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
