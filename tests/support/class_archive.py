"""Spark's classes as its JVM has read them: with this archive a session starts in half the time.

    python -m tests.support.class_archive    make it and Kafka's, unless they are there

Without them the tests are slower and otherwise the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import pyspark
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from deploy import jars
from streaming.config import SparkConfig
from streaming.query.session import spark_session
from tests.support import kafka_archive
from tests.support.kafka_archive import END_S, archive, quick, write_once, writing
from tests.support.waiting import eventually

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_BATCHES: Final = 3


def quick_options() -> str:
    """Options of a driver's JVM that runs for minutes."""
    return " ".join(quick(_archive()))


def _archive() -> Path:
    spark = sorted(Path(pyspark.__file__).parent.joinpath("jars").iterdir())
    return archive("spark", [*spark, *jars.connector_jars()])


def _write_spark(folder: Path, file: Path) -> None:
    """Run a small stateful query."""
    config = SparkConfig(
        master="local[2]",
        jars=jars.connector_jars(),
        shuffle_partitions=2,
        conf={_JAVA_OPTIONS: " ".join(writing(file))},
    )
    session = spark_session(config, "class archive")
    _run_query(session, folder)
    session.stop()
    _end_jvm()


def _run_query(session: SparkSession, folder: Path) -> None:
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counted = rows.groupBy("value").transformWithState(
        _Count(), "value long, seen long", "Update", "None"
    )
    done: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        batch.collect()
        done.append(number)

    query = (
        counted.writeStream.foreachBatch(take)
        .trigger(processingTime="1 second")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .outputMode("update")
        .start()
    )
    # Its source never ends.
    eventually(lambda: len(done) >= _BATCHES, "three batches")
    query.stop()


class _Count(StatefulProcessor):
    """How often a value was seen."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._seen = handle.getValueState("seen", "seen long")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002 - Spark's signature
    ) -> Iterator[Row]:
        before = self._seen.get()
        seen = (before[0] if before else 0) + sum(1 for _ in rows)
        self._seen.update((seen,))
        yield Row(value=key[0], seen=seen)

    def close(self) -> None:
        """Nothing is held."""


def _end_jvm() -> None:
    # Any: pyspark does not type its gateway.
    gateway = cast(Any, SparkContext._gateway)
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(END_S)


if __name__ == "__main__":
    kafka_archive.make()
    write_once(_archive(), _write_spark)
