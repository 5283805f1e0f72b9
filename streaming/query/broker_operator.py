"""Operator ①: turns one broker's reports into its snapshot, and bad ones into dead letters.

A broker that is silent for a day is dropped from state (`trimtab.intake.expiry`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from sources.arrivals import ReportRow, take_reports
from streaming.query.rows import spark_row
from streaming.query.state import STATE, payload_of
from trimtab.intake.expiry import is_forgotten
from trimtab.intake.snapshot import READ, SCHEMA, IntakeSettings


class BrokerOperator(StatefulProcessor):
    """Keyed by (cluster, broker); rows with a bad key have two empty strings as key."""

    def __init__(self, settings: IntakeSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._snapshot = handle.getValueState("snapshot", STATE)

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[SparkRow]:
        subject = cast("tuple[str, str]", tuple(key))
        reports = cast("Iterator[ReportRow]", rows)
        stored = payload_of(self._snapshot.get(), READ, "snapshots")
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        taken = take_reports(subject, reports, stored, self._settings, now_ms)
        if taken.payload:
            self._snapshot.update((SCHEMA, taken.payload))
        if taken.look_ms:
            self._handle.registerTimer(taken.look_ms)
        yield from map(spark_row, taken.rows)

    def handleExpiredTimer(
        self,
        key: Any,  # noqa: ARG002 - Spark passes it by this name
        timerValues: TimerValues,
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002 - Spark passes it by this name
    ) -> Iterator[SparkRow]:
        stored = payload_of(self._snapshot.get(), READ, "snapshots")
        if stored and is_forgotten(stored, timerValues.getCurrentProcessingTimeInMs()):
            self._snapshot.clear()
        return iter(())

    def close(self) -> None:
        pass
