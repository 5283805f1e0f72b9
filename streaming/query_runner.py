"""Keeps the query running: starts it, and restarts it when it fails.

It gives up where a retry cannot help, so that a useless driver does not hold the claim: the
checkpoint cannot be read or written, or has lost its place in Kafka, or the query failed several
times before its first batch although Kafka answers.
"""

from __future__ import annotations

from typing import Final

import structlog
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sinks.errors import SinkError
from sinks.exposition import Exposition
from sinks.kafka.watermarks import watermarks
from streaming.config import JobConfig
from streaming.failure import (
    BatchFailed,
    Failure,
    FatalCause,
    after_vain_attempts,
    drop_frames,
    failure_of,
)
from streaming.query.batch import BatchWriter
from streaming.query.checkpoint import START_OVER
from streaming.query.folder import Folder, FolderError
from streaming.query.pipeline import reports_of, rows, source_of
from streaming.query.reports.first_offsets import first_offsets
from streaming.query.reports.rounds_due import due_file
from streaming.query.session import jvm_end
from streaming.query.spark_checks import check_checkpoint
from streaming.readiness import NotReady
from streaming.shutdown import FAILED, FENCED, Shutdown
from streaming.watchdog import Watchdog
from trimtab.metrics import job as metrics
from trimtab.wire import keys

log = structlog.get_logger()

_SHORTEST_PAUSE_SECONDS: Final = 1.0
_LONGEST: Final = 30.0
_LOOK_SECONDS: Final = 1
"""Longest time until a requested shutdown is noticed."""
_MOST_IN_VAIN: Final = 5
"""Failed attempts before the first batch: half a minute."""


class QueryRunner:
    """Runs one driver's query until ``shutdown`` is set."""

    def __init__(
        self,
        config: JobConfig,
        spark: SparkSession,
        writer: BatchWriter,
        watchdog: Watchdog,
        shutdown: Shutdown,
    ) -> None:
        self._config = config
        self._spark = spark
        self._writer = writer
        self._watchdog = watchdog
        self._shutdown = shutdown
        self._works = False
        """Whether any batch was written: before that, the checkpoint itself may be the cause."""
        self._in_vain = 0

    def run(self, shown: Exposition) -> None:
        """Run until the driver must end or cannot continue; ``shutdown`` then holds the reason."""
        pause = _SHORTEST_PAUSE_SECONDS
        try:
            while not self._shutdown.is_set():
                failure, progressed = self._once()
                if self._hopeless(failure):
                    return
                # A query that completed a batch has a new failure, not the old one again.
                pause = _SHORTEST_PAUSE_SECONDS if progressed else min(2 * pause, _LONGEST)
                log.error("query failed", cause=failure.cause, restart_seconds=pause)
                shown.count(metrics.QUERY_RESTARTS)
                self._watchdog.progress.waiting("the query's next start")
                self._shutdown.wait(pause)
        except (Py4JNetworkError, ConnectionError) as error:
            self._shutdown.because(FAILED, jvm_end(error))

    def _once(self) -> tuple[Failure, bool]:
        """Run the query until it fails or the driver must end; returns why it failed, and whether
        it completed a batch."""
        try:
            query = self._start()
        except Py4JNetworkError:
            raise
        except (PySparkException, Py4JError, SinkError, FolderError) as error:
            return failure_of(str(error)), False
        return failure_of(self._watch(query)), bool(query.lastProgress)

    def _watch(self, query: StreamingQuery) -> str:
        """Wait until the query fails or the driver must end; returns the error text."""
        try:
            while not query.awaitTermination(_LOOK_SECONDS):
                if self._shutdown.is_set():
                    self._watchdog.hurry()
                    query.stop()
        except (PySparkException, Py4JError) as error:
            # A signal to the whole process group also ends the JVM, perhaps before us.
            return str(error)
        return ""

    def _hopeless(self, failure: Failure) -> bool:
        """Whether a retry is pointless; if so, requests shutdown."""
        if self._writer.fenced:
            self._shutdown.because(FENCED, "a newer job has taken over")
        if not self._shutdown.is_set() and (why := self._cannot_go_on(failure)):
            log.error("the query cannot continue", cause=failure.cause)
            self._shutdown.because(FAILED, why)
        return self._shutdown.is_set()

    def _cannot_go_on(self, failure: Failure) -> str:
        """Why a retry cannot help, and what would; empty if it may."""
        path = self._config.checkpoint
        match failure.trouble:
            case FatalCause.VERSION:
                return (
                    f"another version wrote the checkpoint {path}: start that one, or {START_OVER}"
                )
            case FatalCause.CHECKPOINT:
                return f"the checkpoint {path} cannot be read: {START_OVER}"
        try:
            check_checkpoint(self._spark, self._config)
        except NotReady as error:
            return str(error)
        except SinkError:
            # Without Kafka the checkpoint cannot be compared, and no batch can run.
            return ""
        self._in_vain += not self._works
        if not self._works and self._in_vain >= _MOST_IN_VAIN:
            otherwise = f"if the checkpoint {path} is the cause: {START_OVER}"
            return after_vain_attempts(self._in_vain, failure.cause, otherwise)
        return ""

    def _start(self) -> StreamingQuery:
        kafka = self._config.kafka
        decided = rows(
            self._spark,
            reports_of(
                kafka,
                self._first_reports(),
                self._config.spark.shuffle_partitions,
                str(due_file()),
            ),
            source_of(kafka),
            self._config.intake_settings(),
            self._config.round_settings(),
        )
        return (
            decided.writeStream.queryName("trimtab")
            .outputMode("append")
            .foreachBatch(self._take)
            .option("checkpointLocation", self._config.checkpoint)
            .trigger(processingTime=f"{round(self._config.sized_trigger() * 1000)} milliseconds")
            .start()
        )

    def _first_reports(self) -> dict[str, int]:
        """Where a new query begins to read reports; raises FolderError and SinkError."""
        kafka = self._config.kafka
        latest = kafka.starting_offsets == "latest"

        def ask() -> dict[int, int]:
            found = watermarks(kafka.bootstrap, [keys.LOAD_REPORTS], kafka.client)
            return {number: bounds[latest] for (_, number), bounds in found.items()}

        return first_offsets(Folder(self._spark, self._config.checkpoint), ask)

    def _take(self, frame: DataFrame, number: int) -> None:
        self._watchdog.progress.began(number)
        try:
            self._writer(frame, number)
        except Py4JJavaError as error:
            # Spark recognises the error by this name.
            name = f"{type(error).__module__}.{type(error).__name__}"
            raise BatchFailed(f"{name}: {drop_frames(str(error))}") from None
        self._works = True
        self._watchdog.progress.ended(number)
