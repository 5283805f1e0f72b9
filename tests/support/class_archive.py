"""Spark's classes as its JVM has read them: with this archive a session starts in half the time.

    python -m tests.support.class_archive    make it, unless it is there

Without it the tests are slower and otherwise the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import pyspark
from pyspark import SparkContext
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from deploy import jars
from deploy.kafka_server import QUICK, java
from streaming.config import SparkConfig
from streaming.query.session import spark_session
from tests.support.waiting import eventually

_BUILD: Final = Path(__file__).parents[2] / "build"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_BATCHES: Final = 3
_END_S: Final = 600.0
"""The JVM writes 100 MB; on a machine that others use too that takes minutes."""


def quick_options() -> str:
    """Options of a driver's JVM that runs for minutes."""
    found = [f"-XX:SharedArchiveFile={_archive()}"] if _archive().exists() else []
    return " ".join([*QUICK, *found])


def _archive() -> Path:
    """Named after what it is made of: a JVM refuses one of another Java, or of other jars."""
    runtime = os.path.realpath(shutil.which(java()) or "")
    spark = sorted(Path(pyspark.__file__).parent.joinpath("jars").iterdir())
    files = [Path(runtime), *spark, *jars.connector_jars()]
    parts = [(str(each), each.stat().st_mtime_ns) for each in files]
    return _BUILD / f"spark-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def make() -> None:
    """Run a small stateful query in a JVM that writes the archive when it ends."""
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=_BUILD) as folder:
        made = Path(folder) / "spark.jsa"
        # The JVM names each of the thousands of classes that it leaves out.
        options = " ".join([*QUICK, "-Xlog:disable", f"-XX:ArchiveClassesAtExit={made}"])
        config = SparkConfig(
            master="local[2]",
            jars=jars.connector_jars(),
            shuffle_partitions=2,
            conf={_JAVA_OPTIONS: options},
        )
        session = spark_session(config, "class archive")
        _run_query(session, folder)
        session.stop()
        _end_jvm()
        made.replace(_archive())


def _run_query(session: SparkSession, folder: str) -> None:
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counted = rows.groupBy("value").transformWithState(
        _Count(), "value long, seen long", "Update", "None"
    )
    query = (
        counted.writeStream.foreachBatch(lambda batch, _: cast(None, batch.collect()))
        .trigger(processingTime="1 second")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .outputMode("update")
        .start()
    )
    # Its source never ends.
    eventually(lambda: _batches(query) >= _BATCHES, "three batches")
    query.stop()


def _batches(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return 0 if progress is None else progress["batchId"]


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
    gateway.proc.wait(_END_S)


if __name__ == "__main__":
    if not _archive().exists():
        make()
