"""What a batch says to Kafka: no record larger than a topic takes, and few at a time.

A long list would outlast the time of a delivery, and be published from its beginning for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from sinks.kafka.publisher import Outgoing
from trimtab.wire import keys
from trimtab.wire.pieces import pieces
from trimtab.wire.rows import BatchRecord

PAGE: Final = 1 << 22
"""Bytes published at once, and a record more."""


def split_pages(records: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    """The records in their order, a list for each call."""
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
    """A batch as trimtab.rounds keeps it."""
    for value, headers in pieces(msgspec.json.encode(done), done.generation):
        yield Outgoing(keys.ROUNDS, f"{done.query}/{done.batch}", value, headers)
