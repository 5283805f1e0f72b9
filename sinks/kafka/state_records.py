"""Turns an export of the state into Kafka records, few at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sinks.kafka.pages import split_pages
from sinks.kafka.publisher import Outgoing
from trimtab.intake import snapshot
from trimtab.state import memory
from trimtab.store.requests import BatchId
from trimtab.wire import keys
from trimtab.wire.columns import pack
from trimtab.wire.pieces import slices
from trimtab.wire.rows import Row
from trimtab.wire.state import StateRecord, state_key


def state_pages(rows: Iterable[Row], batch: BatchId, generation: int) -> Iterator[list[Outgoing]]:
    """Lists of records to publish, one after another, for a batch's state rows."""
    return split_pages(_records(rows, batch, generation))


def _records(rows: Iterable[Row], batch: BatchId, generation: int) -> Iterator[Outgoing]:
    pieces: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for row in rows:
        pieces[row.cluster] += ((row.subject, piece) for piece in slices(bytes(row.payload)))
    for cluster, parts in pieces.items():
        for number, (subject, piece) in enumerate(parts):
            record = StateRecord(
                query=batch.query,
                batch=batch.batch,
                generation=generation,
                cluster=cluster,
                number=number,
                of=len(parts),
                subject=subject,
                payload=piece,
                memory_schema=memory.SCHEMA,
                snapshot_schema=snapshot.SCHEMA,
            )
            key = state_key(batch.query, batch.batch, cluster)
            yield Outgoing(keys.STATE, key, pack(record))
