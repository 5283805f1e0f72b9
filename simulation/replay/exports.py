"""Reads the state of a cluster after a batch from trimtab.state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Final

from simulation.replay.recorded import Missing, RecordedTopics
from sinks.kafka.readable import MALFORMED
from trimtab.cluster.export import ClusterExport
from trimtab.intake import snapshot
from trimtab.state import memory
from trimtab.store.requests import BatchId
from trimtab.wire import keys
from trimtab.wire.columns import unpack
from trimtab.wire.state import StateRecord, state_key

SKEW_MS: Final = 60_000
"""How far Kafka's clock may be behind the job's."""

_Pieces = dict[int, StateRecord]


def held_after(topics: RecordedTopics, batch: BatchId, at: int, cluster: str) -> ClusterExport:
    """The cluster's export after the batch with timestamp ``at``; raises Missing."""
    for partition in sorted(topics.partitions(keys.STATE)):
        told = _told(topics, partition, batch, at, cluster)
        for generation in sorted(told, reverse=True):
            pieces = told[generation]
            if len(pieces) == next(iter(pieces.values())).of:
                return _joined(pieces)
    raise Missing(
        f"{keys.STATE} no longer has the state of {cluster} after batch {batch.batch}: "
        f"ask for a later span, and keep {keys.STATE} as long as {keys.ROUNDS}"
    )


def _told(
    topics: RecordedTopics, partition: int, batch: BatchId, at: int, cluster: str
) -> Mapping[int, _Pieces]:
    """The pieces of each driver, by generation; one that was stopped midway left only some."""
    found: dict[int, _Pieces] = defaultdict(dict)
    for piece in _pieces(topics, partition, batch, at, cluster):
        found[piece.generation][piece.number] = piece
    return found


def _pieces(
    topics: RecordedTopics, partition: int, batch: BatchId, at: int, cluster: str
) -> Iterator[StateRecord]:
    wanted = state_key(batch.query, batch.batch, cluster)
    start = topics.offset_at(keys.STATE, partition, at - SKEW_MS)
    for record in topics.between(keys.STATE, partition, start, topics.end(keys.STATE, partition)):
        key = (record.key or b"").decode(errors="replace")
        if key == wanted:
            # Without a piece that is damaged, the export is missing.
            with suppress(*MALFORMED):
                yield unpack(record.value or b"", StateRecord)
        elif _is_later(key, batch):
            return


def _is_later(key: str, batch: BatchId) -> bool:
    """Whether a query is at a later export, so that no piece of this one follows."""
    query, number, _ = (*key.split("/", 2), "", "")[:3]
    return query == batch.query and number.isdecimal() and int(number) > batch.batch


def _joined(pieces: _Pieces) -> ClusterExport:
    in_order = [pieces[number] for number in sorted(pieces)]
    schemas = {(piece.memory_schema, piece.snapshot_schema) for piece in in_order}
    if not schemas <= {(memory.SCHEMA, read) for read in snapshot.READ}:
        raise Missing(
            f"{in_order[0].cluster} was exported after batch {in_order[0].batch} by a version of "
            f"trimtab with other schemas, {sorted(schemas)}: replay it with that version"
        )
    return ClusterExport.of(
        (subject, b"".join(piece.payload for piece in parts))
        for subject, parts in groupby(in_order, key=attrgetter("subject"))
    )
