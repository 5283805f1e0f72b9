"""The invariants of a run, from what its brokers and its job left behind: what broke each.

I1  no two brokers serve one bundle at once                    the brokers' diary
I2  a record's epoch only grows, by the rules                  the journal, audited
I3  no command below the present epoch is carried out          commands against the journal
I4  every command ends in time                                 commands against the journal, audited
I5  no bundle is without a broker for longer than a lease + 5 s      the diary
I6  a replay of what was read decides and remembers the same   trimtab.rounds
I7  moves keep to their budget, and none goes back at once     trimtab.rounds, the journal
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from simulation.replay.batches import Replay, distinct, rounds_of
from sources.records import Record as Entry
from tests.faults.serving import Span
from trimtab.auditing.auditor import NOTES, Audit, Violation
from trimtab.auditing.auditor import ViolationKind as Finding
from trimtab.model import namespace_of, parse_bundle
from trimtab.ownership import Event
from trimtab.settings import Settings
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rounds import BatchRecord

LATE: Final = frozenset({Finding.UNANSWERED})


class Gap(NamedTuple):
    """A time in which no broker served a part of a namespace's ring, named as a bundle."""

    bundle: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def dual_owners(spans: Iterable[Span]) -> list[tuple[Span, Span]]:
    """I1. A bundle and its children have the same topics."""
    clashes = []
    for group in _by_namespace(spans).values():
        group.sort(key=lambda span: span.begin)
        for i, span in enumerate(group):
            for other in group[i + 1 :]:
                if other.begin >= span.end:
                    break
                if other.broker != span.broker and _overlap(span.bundle, other.bundle):
                    clashes.append((span, other))
    return clashes


def gaps(spans: Iterable[Span], begin: float, end: float) -> list[Gap]:
    """Every time within ``begin`` and ``end`` in which no broker served a part of a ring."""
    found: list[Gap] = []
    for namespace, group in _by_namespace(spans).items():
        ranges = {span.bundle: parse_bundle(span.bundle)[1] for span in group}
        edges = sorted({edge for span in ranges.values() for edge in span})
        for low, high in pairwise(edges):
            over = [s for s in group if ranges[s.bundle].low <= low < ranges[s.bundle].high]
            name = f"{namespace}/0x{low:08x}_0x{high:08x}"
            found += (Gap(name, *bare) for bare in _bare(over, begin, end))
    return found


def _bare(spans: list[Span], begin: float, end: float) -> Iterator[tuple[float, float]]:
    at = begin
    for span in sorted(spans, key=lambda span: span.begin):
        if span.begin > at:
            yield at, min(span.begin, end)
        at = max(at, span.end)
        if at >= end:
            return
    yield at, end


def _by_namespace(spans: Iterable[Span]) -> dict[str, list[Span]]:
    groups: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        groups[namespace_of(span.bundle)].append(span)
    return groups


def _overlap(bundle: str, other: str) -> bool:
    (low, high), (first, last) = parse_bundle(bundle)[1], parse_bundle(other)[1]
    return low < last and first < high


def audited(
    changes: Iterable[Change],
    commands: Iterable[Command],
    records: Mapping[str, Record],
    now_ms: int,
    grace_ms: int,
) -> tuple[list[Violation], list[Violation]]:
    """I2 and I4; ``records`` are Redis's at rest, and everything journalled is in ``changes``."""
    audit = Audit(grace_ms)
    for change in changes:
        audit.see_change(change)
    for command in commands:
        audit.see_command(command)
    found = audit.settle(now_ms)
    for cluster in audit.clusters:
        found += audit.behind(cluster, records) + audit.unjournalled(cluster, records)
    broken = [violation for violation in found if violation.kind not in NOTES]
    return [v for v in broken if v.kind not in LATE], [v for v in broken if v.kind in LATE]


def forgotten(before: Mapping[str, Record], after: Mapping[str, Record]) -> list[str]:
    """Bundles whose record is older than before, or gone."""
    return [b for b, record in before.items() if b not in after or after[b].epoch < record.epoch]


def carried_out_late(changes: Iterable[Change], commands: Iterable[Command]) -> list[str]:
    """I3. A change that a command asked for follows the record that the command was issued with."""
    epoch_of = {(command.id, command.bundle): command.epoch for command in commands}
    late = []
    for change in changes:
        command, _, event = change.record.by.rpartition("/")
        # What a request changes of other bundles has the request's id, and epochs of its own.
        epoch = epoch_of.get((command, change.bundle))
        if epoch is None or event == Event.RETIRE or change.event is Event.RESTORE:
            continue
        after = change.record.epoch
        if after.counter != epoch.counter + 1 or after.generation < epoch.generation:
            late.append(f"{change.bundle}: {command} of {epoch} made {after}")
    return late


def diverges(
    batches: Sequence[BatchRecord],
    replay: Replay,
    read_by: Callable[[BatchRecord], Iterable[Entry]],
) -> list[str]:
    """I6, of the batches of one query; ``replay`` is new."""
    for batch in distinct(batches):
        again = rounds_of(replay.run(batch.at, read_by(batch)))
        if again != {record.cluster: record for record in batch.rounds}:
            return [f"batch {batch.batch}: {again} is not {batch.rounds}"]
    return []


def restless(
    batches: Sequence[BatchRecord], changes: Iterable[Change], settings: Settings
) -> list[str]:
    """I7. What was handed over rests for the grace period, unless its new owner was lost."""
    broken = []
    most = settings.round.max_moves
    for batch in batches:
        for record in batch.rounds:
            if 0 < most < len(record.moves):
                broken.append(f"round {record.round}: {len(record.moves)} moves, not {most}")
    # A round counts by the batch's clock; the record's is that of the store, which writes later. A
    # batch that was repeated may be recorded by another generation than carried it out.
    decided: dict[str, int] = {}
    for batch in batches:
        name = f"{batch.query}/{batch.batch}"
        decided |= {name: batch.at, f"{batch.generation}/{name}": batch.at}
    moved: dict[str, tuple[int, str | None]] = {}
    for change in changes:
        if change.event is not Event.TRANSFER:
            continue
        name = "/".join(change.record.by.split("/")[-3:-1])
        at, source = moved.get(change.bundle, (0, None))
        now = decided.get(name, change.record.since)
        now = decided.get(f"{change.record.epoch.generation}/{name}", now)
        rested = now - at
        again = source is not None and source == change.record.destination
        if again and rested < 1000 * settings.round.grace_period:
            broken.append(f"{change.bundle} goes back to {source} after {rested} ms")
        moved[change.bundle] = now, change.record.owner
    return broken
