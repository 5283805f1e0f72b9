"""The empty pair: two chained stateful operators that compute nothing, Spark's floor for ours.

``python -m benchmarks.empty BOOTSTRAP SECONDS`` runs it as the job runs its query, over what
arrives meanwhile, and prints the batches' seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from deploy import jars
from sources.topics import KafkaSource, select_rows
from streaming.config import SparkConfig
from streaming.query.reports.source import ReportStream
from streaming.query.session import spark_session
from trimtab.wire import keys
from trimtab.wire.rows import Tag

_SCHEMA: Final = "cluster string, rows int"
_WARM_UP_SHARE: Final = 0.5
"""Share of the time: until then the JVM compiles more than it runs."""


class Counting(StatefulProcessor):
    """Reads its rows, stores nothing, and sends one small row on."""

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


def empty_pair(
    spark: SparkSession, source: KafkaSource, decoded: ReportStream | None = None
) -> DataFrame:
    """The same topics as ``streaming.query.pipeline.rows``, reports as they are, a key a broker.

    ``decoded``: reports as the job reads them, decoded before the shuffle and by shard; the keys
    alone go on.
    """
    if decoded is not None:
        key, reports = "shard", decoded.read(spark).withColumn("cluster", f.lit("bench"))
        reports = reports.select("cluster", key)
    else:
        key, reports = "broker", source.read(spark, keys.LOAD_REPORTS)
        names = f.split(f.col("key").cast("string"), "/")
        reports = reports.select(names[0].alias("cluster"), names[1].alias(key), "value")
    counts = reports.groupBy("cluster", key).transformWithState(
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


def run(bootstrap: str, seconds: float) -> list[float]:
    """The seconds of each batch after the warm-up, from trigger to commit."""
    conf = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    spark = spark_session(SparkConfig(jars=jars.connector_jars(), conf=conf), "trimtab-empty")
    source = KafkaSource(bootstrap, starting_offsets="latest")
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            empty_pair(spark, source)
            .writeStream.outputMode("append")
            .foreachBatch(_collect)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        time.sleep(seconds)
        batches = [dict(progress) for progress in query.recentProgress]
        query.stop()
        spark.stop()
    took = [b["durationMs"]["triggerExecution"] / 1000 for b in batches if b["numInputRows"]]
    return took[int(_WARM_UP_SHARE * len(took)) :]


def _collect(frame: DataFrame, _number: int) -> None:
    frame.collect()


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], float(sys.argv[2]))))
