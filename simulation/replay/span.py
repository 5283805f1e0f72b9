"""Finds the recorded batches to run, and where to start.

of the batches from one bound to the other, of one query:
  each cluster that ran a round there starts from its newest export before them
  if one has none: all start from the query's first batch, if that is still recorded
  else from that cluster's first export among them, if it ran no round before
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from simulation.replay.batch_records import BATCHES, decode_values
from simulation.replay.batches import Contradiction, require_agreement
from simulation.replay.recorded import Missing, RecordedTopics
from trimtab.explaining.words import iso
from trimtab.nearby import nearby
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord


class Bound(NamedTuple):
    """The number of a batch, or a batch timestamp (epoch ms)."""

    at: int
    is_number: bool = False


class Asked(NamedTuple):
    """Both bounds are inclusive; ``query`` and ``cluster`` choose where there are several."""

    since: Bound
    until: Bound
    query: str | None = None
    cluster: str | None = None


class Ambiguous(ValueError):
    """Raised if batches of several queries match."""


class Head(NamedTuple):
    """A batch with its place on trimtab.rounds: its first offset, and the one after it."""

    batch: int
    at: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.batch} ({iso(self.at)})"


@dataclass(frozen=True, slots=True)
class Span:
    """The batches to run; ``first`` to ``last`` are compared."""

    query: str
    first: int
    last: int
    offsets: tuple[int, int]
    """The first offset on trimtab.rounds, and the one after the last."""
    starts: Mapping[str, Head] | None
    """Clusters and the batch after which each was exported; None: all start at the first."""


class _Named(msgspec.Struct):
    cluster: str


class _Brief(msgspec.Struct):
    """The part of a BatchRecord that is needed to find a span."""

    query: str
    batch: int
    at: int
    rounds: tuple[_Named, ...] = ()
    exported: tuple[str, ...] = ()

    def is_before(self, bound: Bound) -> bool:
        return (self.batch if bound.is_number else self.at) < bound.at

    def is_after(self, bound: Bound) -> bool:
        return (self.batch if bound.is_number else self.at) > bound.at


@dataclass(slots=True)
class _Trail:
    """What one query's batches show, in the order of recording."""

    oldest: Head
    newest: Head
    before: dict[str, Head] = field(default_factory=dict)
    """Cluster to its newest export before the span."""
    within: dict[str, Head] = field(default_factory=dict)
    """Cluster to its first export in the span."""
    shown: dict[str, int] = field(default_factory=dict)
    """Cluster to the batch of its first round in the span."""
    named: set[str] = field(default_factory=set)
    """All clusters that have a round in the span, also those that were not asked for."""
    met: list[Head] = field(default_factory=list)
    """The first and the last batch of the span; empty while none was met."""

    def take(self, brief: _Brief, head: Head, asked: Asked) -> None:
        self.newest = head
        exported = [name for name in brief.exported if asked.cluster in {None, name}]
        if brief.is_before(asked.since):
            self.before |= dict.fromkeys(exported, head)
        elif not brief.is_after(asked.until):
            self.within = dict.fromkeys(exported, head) | self.within
            names = [each.cluster for each in brief.rounds if asked.cluster in {None, each.cluster}]
            self.shown = dict.fromkeys(names, brief.batch) | self.shown
            self.named.update(each.cluster for each in brief.rounds)
            self.met = [self.met[0] if self.met else head, head]


def find_span(topics: RecordedTopics, asked: Asked) -> Span:
    """Find the batches that were asked for; raises Missing and Ambiguous."""
    low, high = topics.whole(keys.ROUNDS)
    trails = _trails(topics, (low, high), asked)
    met = {query: trail for query, trail in trails.items() if trail.met}
    if asked.cluster is not None:
        # Of several queries, those that ran a round of it.
        met = {query: trail for query, trail in met.items() if trail.shown} or met
    if not trails:
        of = f" of query {asked.query}" if asked.query else ""
        raise Missing(f"no batch{of} is recorded on {keys.ROUNDS}: has a job run with this Kafka?")
    if not met:
        said = [f"batches {t.oldest} to {t.newest} of query {q}" for q, t in trails.items()]
        raise Missing(f"no batch of this span is recorded, but {'; '.join(said)}")
    if len(met) > 1:
        choices = [f"--query {q}: {_told(trail)}" for q, trail in sorted(met.items())]
        raise Ambiguous("\n".join([f"batches of {len(met)} queries match; choose one:", *choices]))
    [(query, trail)] = met.items()
    if not trail.shown:
        of = f" of {asked.cluster}" if asked.cluster else ""
        near = f"; {nearby(asked.cluster, trail.named)}" if asked.cluster else ""
        first, last = trail.met
        raise Missing(f"no round{of} ran in batches {first} to {last}{near}")
    return _started(query, trail, whole=low == 0 or trail.oldest.batch == 0)


def _trails(topics: RecordedTopics, offsets: tuple[int, int], asked: Asked) -> dict[str, _Trail]:
    trails: dict[str, _Trail] = {}
    decoder = msgspec.json.Decoder(_Brief)
    for whole, brief in decode_values(topics.between(keys.ROUNDS, 0, *offsets), decoder):
        if asked.query in {None, brief.query}:
            head = Head(brief.batch, brief.at, whole.start, whole.end)
            trails.setdefault(brief.query, _Trail(head, head)).take(brief, head, asked)
    return trails


def _told(trail: _Trail) -> str:
    first, last = trail.met
    return f"batches {first} to {last}, {', '.join(sorted(trail.shown)) or 'no rounds'}"


def _started(query: str, trail: _Trail, *, whole: bool) -> Span:
    """The span, with the start of each of its clusters."""
    first, last = trail.met
    starts = {name: trail.before[name] for name in trail.shown if name in trail.before}
    strange = trail.shown.keys() - starts.keys()
    if strange and whole:
        offsets = (trail.oldest.start, last.end)
        return Span(query, first.batch, last.batch, offsets, None)
    for name in sorted(strange):
        head = trail.within.get(name)
        if head is None or trail.shown[name] < head.batch:
            advice = f"ask for batches after {head}" if head else "ask for a later span"
            raise Missing(
                f"nothing was exported of {name} before this span, and the first batches of query "
                f"{query} are no longer recorded: {advice}"
            )
        starts[name] = head
    begin = min(head.start for head in starts.values())
    return Span(query, first.batch, last.batch, (begin, last.end), starts)


def batches_of(topics: RecordedTopics, span: Span) -> Iterator[BatchRecord]:
    """Yield each batch once, in order, from the starting one; raises Contradiction, Missing."""
    latest: BatchRecord | None = None
    for _, batch in decode_values(topics.every(keys.ROUNDS, 0, *span.offsets), BATCHES):
        if batch.query != span.query:
            continue
        if latest is None or batch.batch > latest.batch:
            if latest is not None:
                yield latest
            latest = batch
        elif batch.batch == latest.batch:
            latest = require_agreement(latest, batch)
        else:
            raise Contradiction(
                f"batch {batch.batch} of query {batch.query} was recorded again after batch "
                f"{latest.batch}: an older checkpoint was put back in between"
            )
    if latest is not None:
        yield latest
