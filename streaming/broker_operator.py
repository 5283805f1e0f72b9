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

from sources.arrivals import ReportRow, take_reports
from streaming.rows import spark_row
from streaming.state import STATE, payload_of
from trimtab.snapshot import SCHEMA, IntakeSettings


class BrokerOperator(StatefulProcessor):
    """Keyed by (cluster, broker); rows of a bad key come under two empty strings."""

    def __init__(self, settings: IntakeSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._snapshot = handle.getValueState("snapshot", STATE)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: ARG002 - Spark passes it by this name
    ) -> Iterator[SparkRow]:
        subject = cast("tuple[str, str]", tuple(key))
        reports = cast("Iterator[ReportRow]", rows)
        stored = payload_of(self._snapshot.get(), SCHEMA, "snapshots")
        out, payload = take_reports(subject, reports, stored, self._settings)
        if payload:
            self._snapshot.update((SCHEMA, payload))
        yield from map(spark_row, out)

    def close(self) -> None:
        pass
