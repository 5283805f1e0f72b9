"""Reads Spark's offset log: a batch's input, known before it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from streaming.query.folder import Folder

Offsets = dict[str, dict[str, int]]
"""Topic to partition to the offset after the last one read."""


_SOURCES: Final = 3
"""Reports, intents and ownership: each source logs where it began."""


def first_file(source: int) -> str:
    """Where Spark's Kafka connector keeps the offsets at which a source of a query began."""
    return f"sources/{source}/0"


def parse_first(text: str) -> Offsets:
    """The offsets of such a file: a byte for very old versions of Spark, a version line, JSON."""
    _, _, offsets = text.partition("\n")
    return dict(json.loads(offsets))


def format_first(offsets: Offsets) -> str:
    """The file's text."""
    return f"\0v1\n{json.dumps(offsets)}"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch's timestamp (epoch ms) and end offsets."""

    at: int
    ends: Offsets


@dataclass(slots=True)
class OffsetLog:
    """The offsets and metadata of one checkpoint, on any file system that Spark supports."""

    spark: SparkSession
    checkpoint: str
    _last: tuple[int, Batch] = field(default=(-1, Batch(0, {})), init=False)

    def query_id(self) -> str:
        """The query's id, which a restart from this checkpoint keeps."""
        return str(json.loads(self._read("metadata"))["id"])

    def ranges(self, batch: int) -> tuple[int, dict[str, dict[str, tuple[int, int]]]]:
        """The batch timestamp, and the first and end offset of each partition that was read."""
        number, before = self._last
        if number != batch - 1:
            before = self._batch(batch - 1) if batch else Batch(0, {})
        if not before.ends:
            before = Batch(0, self._first())
        this = self._batch(batch)
        self._last = (batch, this)
        ranges: dict[str, dict[str, tuple[int, int]]] = {}
        for topic, ends in this.ends.items():
            starts = before.ends.get(topic, {})
            for partition, end in ends.items():
                start = starts.get(partition, 0)
                if end > start:
                    ranges.setdefault(topic, {})[partition] = (start, end)
        return this.at, ranges

    def _first(self) -> Offsets:
        """The query's first offsets: not 0 with "latest", or after retention deleted records."""
        starts: Offsets = {}
        for source in range(_SOURCES):
            starts |= parse_first(self._read(first_file(source)))
        return starts

    def _batch(self, number: int) -> Batch:
        # A version line, the metadata, then a line for each source ("-" if it has read nothing).
        _, metadata, *sources = self._read(f"offsets/{number}").splitlines()
        ends: Offsets = {}
        for source in sources:
            ends |= {} if source == "-" else json.loads(source)
        return Batch(json.loads(metadata)["batchTimestampMs"], ends)

    def _read(self, name: str) -> str:
        return Folder(self.spark, self.checkpoint).read(name)
