"""What ownership was, put together again after the store has forgotten some of it.

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

from trimtab.model import NO_EPOCH, Epoch, HashRange, namespace_of, parse_bundle
from trimtab.ownership import State
from trimtab.wire.ownership import Record

Records = Mapping[str, Record]
"""Bundle to record."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the store lacks."""

    records: dict[str, Record]
    """Newer than what the store has."""
    unjournalled: frozenset[str]
    """Those of them that the journal topic lacks."""


def rebuilt(
    stored: Records, journalled: Records, asserted: Iterable[Records], generation: int
) -> Rebuilt:
    """What to restore; ``generation`` is one that nobody has used yet.

    Equal inputs in any order give equal results: an epoch is given out once.
    """
    newest = dict(stored)
    for known in (journalled, *asserted):
        for bundle, record in known.items():
            if record.epoch > _epoch(newest, bundle):
                newest[bundle] = record
    newest |= _untangled(newest, generation)
    lacking = {b: r for b, r in sorted(newest.items()) if r.epoch > _epoch(stored, b)}
    unjournalled = (b for b, r in lacking.items() if r.epoch > _epoch(journalled, b))
    return Rebuilt(lacking, frozenset(unjournalled))


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
