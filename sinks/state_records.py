"""An export as Kafka records, few at a time: a large one would outlast the time of a delivery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from sinks.publisher import Outgoing
from trimtab import memory, snapshot
from trimtab.issue import BatchId
from trimtab.wire import keys
from trimtab.wire.columns import pack
from trimtab.wire.rows import Row
from trimtab.wire.state import StateRecord, state_key

PIECE: Final = 1 << 19
"""Bytes of a payload at most: a record stays below what a topic takes by default."""

PAGE: Final = 1 << 22
"""Bytes published at once, and a record more."""


def state_pages(rows: Iterable[Row], batch: BatchId, generation: int) -> Iterator[list[Outgoing]]:
    """What to publish, one list after another, of a batch's rows of state."""
    page: list[Outgoing] = []
    size = 0
    for record in _records(rows, batch, generation):
        page.append(record)
        size += len(record.value)
        if size >= PAGE:
            yield page
            page, size = [], 0
    if page:
        yield page


def _records(rows: Iterable[Row], batch: BatchId, generation: int) -> Iterator[Outgoing]:
    pieces: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for row in rows:
        pieces[row.cluster] += ((row.subject, piece) for piece in _pieces(bytes(row.payload)))
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


def _pieces(payload: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(payload), 1), PIECE):
        yield payload[start : start + PIECE]
