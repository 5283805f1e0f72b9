"""Runs the batches of a span again, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from simulation.replay.batch_records import read_in
from simulation.replay.batches import Replay, rounds_of
from simulation.replay.exports import held_after
from simulation.replay.recorded import Missing, RecordedTopics
from simulation.replay.shadowed import ShadowedCluster
from simulation.replay.span import Span, batches_of
from sources.records import Record
from trimtab.cluster.job_settings import from_record
from trimtab.cluster.operator import Cluster
from trimtab.explaining.witness import Witness
from trimtab.settings.setting import InvalidSettings
from trimtab.store.requests import BatchId
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord, RoundRecord


@dataclass(frozen=True, slots=True)
class ReplayCycle:
    """A batch and its rounds by cluster."""

    batch: BatchRecord
    recorded: dict[str, RoundRecord]
    again: dict[str, RoundRecord]
    left_out: int = 0
    """Rounds of clusters that are only followed from this batch's export on."""
    beside: dict[str, RoundRecord] = field(default_factory=dict)
    """The same rounds with a shadow strategy."""


class Readers:
    """One reader per partition; each continues where it was."""

    def __init__(self, opened: Callable[[], RecordedTopics]) -> None:
        self._opened = opened
        self._readers: dict[tuple[str, int], RecordedTopics] = {}

    def of(self, topic: str, partition: int) -> RecordedTopics:
        """The reader of this partition."""
        place = (topic, partition)
        if place not in self._readers:
            self._readers[place] = self._opened()
        return self._readers[place]

    def read_by(self, batch: BatchRecord) -> list[Record]:
        """The records that the batch read; raises Missing."""
        return [
            record
            for topic, partition, start, end in read_in(batch)
            for record in self.of(topic, partition).every(topic, partition, start, end)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            reader.close()


class SpanReplay:
    """Replays a span; ``cluster``: only this one; ``shadow``: once more, with this shadow."""

    def __init__(
        self, readers: Readers, span: Span, cluster: str | None = None, shadow: str = ""
    ) -> None:
        self._readers = readers
        self._span = span
        self._alone = None if cluster is None else {cluster}
        self._made: list[Callable[..., Cluster]] = [Cluster]
        if shadow:
            self._made.append(partial(ShadowedCluster, shadow=shadow))
        self._replays: list[Replay] = []

    def steps(self) -> Iterator[ReplayCycle]:
        """Run the batches; raises Missing and Contradiction."""
        for batch in batches_of(self._readers.of(keys.ROUNDS, 0), self._span):
            self._start(batch)
            yield self._step(batch)
            self._restore(batch)

    def witness(self, cluster: str) -> Witness | None:
        """The witness of the last round that was run of a cluster."""
        held = self._replays[0].clusters.get(cluster) if self._replays else None
        return None if held is None else held.witness

    def _start(self, batch: BatchRecord) -> None:
        """Continue with the settings of the job that ran this batch."""
        if batch.settings is None:
            if not self._replays:
                raise Missing(f"batch {batch.batch} does not say what its job was started with")
            return
        try:
            intake, defaults = from_record(batch.settings)
        except InvalidSettings as error:
            raise Missing(
                f"batch {batch.batch} was recorded by a version of trimtab with other settings: "
                f"replay it with that one ({error})"
            ) from error
        if not self._replays:
            followed = self._alone if self._span.starts is None else set()
            self._replays = [
                Replay(intake, defaults, followed=followed, made=m) for m in self._made
            ]
        for replay in self._replays:
            replay.start(intake, defaults)

    def _step(self, batch: BatchRecord) -> ReplayCycle:
        followed = self._replays[0].followed
        records = [] if followed == set() else self._read_by(batch)
        again = [rounds_of(replay.run(batch.at, records)) for replay in self._replays]
        wanted = {r.cluster: r for r in batch.rounds if self._alone in (None, {r.cluster})}
        recorded = {c: r for c, r in wanted.items() if followed is None or c in followed}
        return ReplayCycle(batch, recorded, again[0], len(wanted) - len(recorded), again[-1])

    def _read_by(self, batch: BatchRecord) -> list[Record]:
        try:
            return self._readers.read_by(batch)
        except Missing as error:
            raise Missing(
                f"{error}, which batch {batch.batch} read: ask for a later span, and keep the "
                "topics longer where such spans are to be replayed"
            ) from error

    def _restore(self, batch: BatchRecord) -> None:
        """Follow the clusters that start from their state after this batch."""
        name_of = BatchId(batch.query, batch.batch)
        for cluster, head in (self._span.starts or {}).items():
            if head.batch == batch.batch:
                topics = self._readers.of(keys.STATE, 0)
                held = held_after(topics, name_of, batch.at, cluster)
                for replay in self._replays:
                    replay.restore(cluster, held)
