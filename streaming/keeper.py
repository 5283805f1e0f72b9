"""Keeps the query running: starts it, and starts it again when it fails."""

from __future__ import annotations

from typing import Final

import structlog
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sources.topics import KafkaSource
from streaming.batch import BatchWriter
from streaming.config import JobConfig
from streaming.ending import FAILED, FENCED, Ending
from streaming.exposition import Exposition
from streaming.failure import cause_of
from streaming.query import rows
from streaming.state import ForeignCheckpoint
from streaming.watchdog import Watchdog
from trimtab import metrics

log = structlog.get_logger()

_SHORTEST_PAUSE_SECONDS: Final = 1.0
_LONGEST: Final = 30.0
_LOOK_SECONDS: Final = 1
"""Until an end that was asked for is seen."""


class Keeper:
    """Of one driver's query; ``ending`` tells it when to stop."""

    def __init__(
        self,
        config: JobConfig,
        spark: SparkSession,
        writer: BatchWriter,
        watchdog: Watchdog,
        ending: Ending,
    ) -> None:
        self._config = config
        self._spark = spark
        self._writer = writer
        self._watchdog = watchdog
        self._ending = ending

    def run(self, shown: Exposition) -> None:
        """Until the driver is to end, or cannot go on: then ``ending`` says why."""
        pause = _SHORTEST_PAUSE_SECONDS
        try:
            while not self._ending.is_set():
                query = self._start()
                error = self._watch(query)
                if self._hopeless(error):
                    return
                # A query that got as far as a batch failed anew, not again.
                pause = _SHORTEST_PAUSE_SECONDS if query.lastProgress else min(2 * pause, _LONGEST)
                log.error("query failed", cause=error, restart_seconds=pause)
                shown.count(metrics.QUERY_RESTARTS)
                self._watchdog.progress.waiting("the query's next start")
                self._ending.wait(pause)
        except (Py4JNetworkError, ConnectionError) as error:
            self._ending.because(FAILED, f"Spark's JVM is gone: {error}")

    def _watch(self, query: StreamingQuery) -> str:
        """Wait until the query fails or the driver is to end; why it failed."""
        try:
            while not query.awaitTermination(_LOOK_SECONDS):
                if self._ending.is_set():
                    self._watchdog.hurry()
                    query.stop()
        except (PySparkException, Py4JError) as error:
            # A signal to the whole process group also ends the JVM, perhaps before us.
            return cause_of(str(error))
        return ""

    def _hopeless(self, error: str) -> bool:
        """Whether there is no point in another attempt."""
        if self._writer.fenced:
            self._ending.because(FENCED, "a newer job has taken over")
        if ForeignCheckpoint.__name__ in error:
            log.error(
                "start the version that wrote the checkpoint, or set another `checkpoint`",
                cause=error,
                checkpoint=self._config.checkpoint,
            )
            self._ending.because(FAILED, "another version wrote the checkpoint")
        return self._ending.is_set()

    def _start(self) -> StreamingQuery:
        kafka = self._config.kafka
        source = KafkaSource(
            kafka.bootstrap,
            kafka.starting_offsets,
            kafka.fetch_wait_ms,
            kafka.max_offsets_per_trigger,
            kafka.options,
        )
        decided = rows(
            self._spark, source, self._config.intake_settings(), self._config.round_settings()
        )
        return (
            decided.writeStream.queryName("trimtab")
            .outputMode("append")
            .foreachBatch(self._take)
            .option("checkpointLocation", self._config.checkpoint)
            .trigger(processingTime=f"{round(self._config.trigger_seconds * 1000)} milliseconds")
            .start()
        )

    def _take(self, frame: DataFrame, number: int) -> None:
        self._watchdog.progress.began(number)
        self._writer(frame, number)
        self._watchdog.progress.ended(number)
