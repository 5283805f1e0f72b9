"""Operator ①: one broker's reports become its snapshot; what is poison becomes a dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from sources.load_reports import ReportRow, arrival_of, dead_letter
from streaming.rows import spark_row
from trimtab.snapshot import SCHEMA, Arrival, Dropped, IntakeSettings, Snapshot, fold
from trimtab.wire.columns import pack, unpack
from trimtab.wire.load_report import Poison, PoisonReport
from trimtab.wire.rows import Row, Tag

STATE = "schema int, payload binary"
"""Our own version and bytes: a new field must not stop a query over an old checkpoint."""


class BrokerOperator(StatefulProcessor):
    """Keyed by (cluster, broker); rows of a bad key come under two empty strings."""

    def __init__(self, settings: IntakeSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._snapshot = handle.getValueState("snapshot", STATE)

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[SparkRow]:
        subject = cast("tuple[str, str]", tuple(key))
        arrivals, letters = _sift(subject, cast("Iterator[ReportRow]", rows))
        yield from letters
        if arrivals:
            yield self._fold(subject, arrivals)

    def _fold(self, subject: tuple[str, str], arrivals: list[Arrival]) -> SparkRow:
        cluster, broker = subject
        stored = self._snapshot.get()
        before = _read(stored) if stored else None
        after, dropped = fold(before, broker, arrivals, self._settings)
        payload = b""
        if after is not None and after is not before:
            payload = pack(after)
            self._snapshot.update((SCHEMA, payload))
        duplicate = sum(verdict is Dropped.DUPLICATE for _, verdict in dropped)
        row = Row(
            cluster=cluster,
            tag=Tag.SNAPSHOT,
            subject=broker,
            payload=payload,
            appended_ms=after.appended_ms if after else 0,
            accepted=len(arrivals) - len(dropped),
            duplicate=duplicate,
            old=len(dropped) - duplicate,
        )
        return spark_row(row)

    def close(self) -> None:
        pass


def _read(stored: tuple[Any, ...]) -> Snapshot:
    schema, payload = stored
    if schema != SCHEMA:
        raise RuntimeError(f"the checkpoint holds snapshots of schema {schema}, this job of {SCHEMA}")
    return unpack(bytes(payload), Snapshot)


def _sift(
    subject: tuple[str, str], rows: Iterator[ReportRow]
) -> tuple[list[Arrival], list[SparkRow]]:
    """Checked reports, and a dead letter for each of the others."""
    arrivals, letters = [], []
    for row in rows:
        try:
            if not subject[1]:
                raise PoisonReport(Poison.KEY, "the Kafka key is not cluster/broker")
            arrivals.append(arrival_of(row))
        except PoisonReport as error:
            letters.append(spark_row(dead_letter(subject, row, error)))
    return arrivals, letters
