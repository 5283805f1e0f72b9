"""Operator ①: turns the reports of a shard's brokers into their snapshots.

A broker that is silent for a day is dropped from state (`trimtab.intake.expiry`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from sources.arrivals import Stored, take_arrivals
from sources.shards import SHARDS, unpack_all
from streaming.query.local_copies import LocalCopies
from streaming.query.rows import spark_row
from streaming.query.state import COLUMNS, StoredMapping
from trimtab.intake.expiry import is_forgotten
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import parse_subject
from trimtab.state.packed_pages import LATEST, PackedPages

SNAPSHOTS: Final = f"snapshot_pages_of_{SHARDS}_shards"
"""State: a shard's snapshots by the page. The name says how many shards there are, so that a
checkpoint with another number is refused and not misread."""


class BrokerOperator(StatefulProcessor):
    """Keyed by shard."""

    def __init__(self, settings: IntakeSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._pages = handle.getMapState(SNAPSHOTS, *COLUMNS)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,
    ) -> Iterator[SparkRow]:
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        parcel = unpack_all([bytes(row.parcel) for row in rows])
        yield from map(spark_row, parcel.letters)
        if not parcel.arrivals:
            return
        stored, looks = self._load(key[0]), set[int]()
        # In the order of time: brokers that report one after the other share a page.
        in_order = sorted(parcel.arrivals.items(), key=lambda each: each[1][0].appended_ms)
        for name, arrivals in in_order:
            taken = take_arrivals(parse_subject(name), arrivals, stored, self._settings, now_ms)
            looks.add(taken.look_ms)
            yield from map(spark_row, taken.rows)
        self._save()
        if looks := looks - {0}:
            # Spark warns of a timer that exists: the day's first broker sets it for its shard.
            for look_ms in looks - set(self._handle.listTimers()):
                self._handle.registerTimer(look_ms)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002 - Spark passes it by this name
    ) -> Iterator[SparkRow]:
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        stored = self._load(key[0])
        # All of them first: what is read does not change meanwhile.
        for name, packed in {**stored.snapshots, **stored.latest}.items():
            if is_forgotten(packed, now_ms):
                stored.latest.pop(name, None)
                stored.snapshots.pop(name, None)
        self._save()
        return iter(())

    def _load(self, shard: int) -> Stored:
        """What is stored of the shard's brokers, by ``cluster/broker``."""
        pages, copies = StoredMapping(self._pages), LocalCopies.of("shards", shard)
        self._read = [PackedPages(pages, LATEST, copies=copies), PackedPages(pages, copies=copies)]
        return Stored(*self._read)

    def _save(self) -> None:
        for pages in self._read:
            pages.save()

    def close(self) -> None:
        pass
