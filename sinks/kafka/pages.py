"""Divides a batch's records for Kafka: none larger than a topic allows, and few at a time.

A long list would exceed the delivery timeout, and be published from its start again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from sinks.kafka.publisher import Outgoing
from trimtab.wire import keys
from trimtab.wire.pieces import pieces
from trimtab.wire.rounds import BatchRecord

PAGE: Final = 1 << 22
"""Bytes published at once, plus at most one record."""


def split_pages(records: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    """Divide the records, in order, into one list for each call."""
    page: list[Outgoing] = []
    size = 0
    for record in records:
        page.append(record)
        size += len(record.value)
        if size >= PAGE:
            yield page
            page, size = [], 0
    if page:
        yield page


def batch_records(done: BatchRecord) -> Iterator[Outgoing]:
    """A batch as records of trimtab.rounds."""
    for value, headers in pieces(msgspec.json.encode(done), done.generation):
        yield Outgoing(keys.ROUNDS, f"{done.query}/{done.batch}", value, headers)
