"""The empty pair: two chained stateful operators that compute nothing, Spark's floor for ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from sources.load_reports import select_reports
from sources.topics import KafkaSource, select_rows
from trimtab.wire import keys
from trimtab.wire.rows import Tag

_SCHEMA = "cluster string, rows int"


class Counting(StatefulProcessor):
    """Reads its rows, stores nothing, sends on one small row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "rows int")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: ARG002 - Spark passes it by this name
    ) -> Iterator[SparkRow]:
        yield SparkRow(cluster=key[0], rows=sum(1 for _ in rows))

    def close(self) -> None:
        pass


def empty_pair(spark: SparkSession, source: KafkaSource) -> DataFrame:
    """The same sources, columns and keys as ``streaming.query.rows``."""
    reports = select_reports(source.read(spark, keys.LOAD_REPORTS))
    counts = reports.groupBy("cluster", "broker").transformWithState(
        Counting(), _SCHEMA, outputMode="Append", timeMode="ProcessingTime"
    )
    others = [
        select_rows(source.read(spark, topic), tag).select("cluster", f.lit(0).alias("rows"))
        for topic, tag in ((keys.CONTROL, Tag.INTENT), (keys.OWNERSHIP, Tag.CHANGE))
    ]
    return (
        counts.unionByName(others[0])
        .unionByName(others[1])
        .groupBy("cluster")
        .transformWithState(Counting(), _SCHEMA, outputMode="Append", timeMode="ProcessingTime")
    )
