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
from trimtab.snapshot import SCHEMA, IntakeSettings

STATE = "schema int, payload binary"
"""Our own version and bytes: a new field must not stop a query over an old checkpoint."""


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
        out, payload = take_reports(subject, reports, self._stored(), self._settings)
        if payload:
            self._snapshot.update((SCHEMA, payload))
        yield from map(spark_row, out)

    def _stored(self) -> bytes:
        stored = self._snapshot.get()
        if not stored:
            return b""
        schema, payload = stored
        if schema != SCHEMA:
            raise RuntimeError(
                f"the checkpoint holds snapshots of schema {schema}, this job of {SCHEMA}"
            )
        return bytes(payload)

    def close(self) -> None:
        pass
