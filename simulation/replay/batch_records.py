"""Decodes the records of trimtab.rounds: large values come in several pieces, one a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec
import structlog

from sinks.kafka.readable import MALFORMED
from sources.records import Record
from trimtab.wire import keys
from trimtab.wire.pieces import Joiner
from trimtab.wire.rounds import BatchRecord

log = structlog.get_logger()

T = TypeVar("T")

BATCHES: Final = msgspec.json.Decoder(BatchRecord)

_LONGEST: Final = 200
"""Characters of a reason in the log."""


class Whole(NamedTuple):
    """A value of trimtab.rounds, with the offsets of its first record and of the next value."""

    value: bytes
    start: int
    end: int


def join_pieces(records: Iterable[Record]) -> Iterator[Whole]:
    """Yield the values that the records, in order, hold whole or in a full set of pieces."""
    joiner = Joiner()
    for record in records:
        key, value = record.key or b"", record.value or b""
        whole = joiner.take(key, value, record.headers, record.offset)
        if whole is not None:
            yield Whole(whole.value, whole.offset, record.offset + 1)


def decode_values(
    records: Iterable[Record], decoder: msgspec.json.Decoder[T]
) -> Iterator[tuple[Whole, T]]:
    """Yield the values of `join_pieces`, decoded; warns once of those that no job has written."""
    strangers: list[tuple[int, str]] = []
    for whole in join_pieces(records):
        try:
            decoded = decoder.decode(whole.value)
        except MALFORMED as error:
            strangers.append((whole.start, str(error)))
        else:
            yield whole, decoded
    if strangers:
        offset, reason = strangers[0]
        log.warning(
            "records of no job are left out",
            topic=keys.ROUNDS,
            number=len(strangers),
            first=offset,
            reason=reason[:_LONGEST],
        )


def decode_batches(records: Iterable[Record]) -> list[BatchRecord]:
    """The batches in these records of trimtab.rounds."""
    return [batch for _, batch in decode_values(records, BATCHES)]


def read_in(batch: BatchRecord) -> Iterator[tuple[str, int, int, int]]:
    """Yield what a batch read: topic, partition, first offset and the one after the last."""
    for topic, partitions in batch.offsets.items():
        for partition, (start, end) in partitions.items():
            yield topic, int(partition), start, end
