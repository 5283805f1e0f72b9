"""`trimtab-job`: reads its settings, claims its generation, keeps the query running."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import structlog
import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sinks.connections import redis_client
from sinks.errors import SinkError, Unavailable
from sinks.generation import claim
from sinks.journal_relay import JournalRelay
from sinks.kafka_topics import ensure_topics
from sinks.ownership_store import OwnershipStore
from sinks.publisher import Publisher
from sources.topics import KafkaSource
from streaming.batch import BatchWriter
from streaming.config import InvalidConfig, JobConfig, load_config
from streaming.exposition import Exposition, PortTaken
from streaming.failure import cause_of
from streaming.offsets import OffsetLog
from streaming.progress import ProgressListener
from streaming.query import rows
from streaming.relay import RelayThread
from streaming.session import spark_session
from streaming.state import ForeignCheckpoint
from streaming.tenure import Tenure
from trimtab import metrics

log = structlog.get_logger()

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
FENCED: Final = 4
UNREACHABLE: Final = 5

_SHORTEST_PAUSE_SECONDS: Final = 1.0
_LONGEST: Final = 30.0


class Job:
    """One driver: what it holds open, and the query that it starts again when it fails."""

    def __init__(self, config: JobConfig, spark: SparkSession, shown: Exposition) -> None:
        self._config = config
        self._spark = spark
        self._shown = shown
        self._ended = threading.Event()
        self._client = redis_client(config.redis_url.get_secret_value())
        self._publisher = Publisher(config.kafka.bootstrap, config.kafka.client)
        self._tenure = Tenure(
            lambda: claim(config.kafka.bootstrap, "trimtab-job", config.kafka.client), self._shown
        )
        self._writer = BatchWriter(
            OwnershipStore(self._client),
            self._publisher,
            self._tenure,
            OffsetLog(spark, config.checkpoint),
            self._shown,
        )

    def run(self) -> int:
        """Until `stop`, or until a newer job takes over; an exit code."""
        listener = ProgressListener(self._shown)
        self._spark.streams.addListener(listener)
        relay = RelayThread(
            JournalRelay(self._client, self._publisher), lambda: self._writer.clusters, self._shown
        )
        relay.start()
        log.info("job runs", generation=self._tenure.generation)
        try:
            return self._keep_running()
        finally:
            relay.stop()
            with suppress(Py4JError):
                self._spark.streams.removeListener(listener)
            self._tenure.close()

    def stop(self) -> None:
        self._ended.set()
        self._writer.give_up()

    def _keep_running(self) -> int:
        pause = _SHORTEST_PAUSE_SECONDS
        while True:
            query = self._start()
            error = self._watch(query)
            if self._ended.is_set():
                return OK
            if self._writer.fenced:
                log.error("a newer job has taken over; this one stops")
                return FENCED
            if ForeignCheckpoint.__name__ in error:
                log.error(
                    "start the version that wrote the checkpoint, or set another `checkpoint`",
                    cause=error,
                    checkpoint=self._config.checkpoint,
                )
                return FAILED
            # A query that got as far as a batch failed anew, not again.
            pause = _SHORTEST_PAUSE_SECONDS if query.lastProgress else min(2 * pause, _LONGEST)
            log.error("query failed", cause=error, restart_seconds=pause)
            self._shown.count(metrics.QUERY_RESTARTS)
            if self._ended.wait(pause):
                return OK

    def _watch(self, query: StreamingQuery) -> str:
        """Wait until the query fails or the job is to end; why it failed."""
        try:
            while not self._ended.is_set() and not query.awaitTermination(1):
                pass
            query.stop()
        except (PySparkException, Py4JError) as error:
            # A signal to the whole process group also ends the JVM, perhaps before us.
            return cause_of(str(error))
        return ""

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
            .foreachBatch(self._writer)
            .option("checkpointLocation", self._config.checkpoint)
            .trigger(processingTime=f"{round(self._config.trigger_seconds * 1000)} milliseconds")
            .start()
        )


def check_services(config: JobConfig) -> None:
    """Topics exist and Redis answers; raises SinkError naming the address that does not."""
    for finding in ensure_topics(config.kafka.bootstrap, config.kafka.client):
        log.warning("topic", finding=str(finding))
    OwnershipStore(redis_client(config.redis_url.get_secret_value())).ping()


def run(
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
) -> None:
    """Balance the fleet until stopped."""
    try:
        settings = load_config(config)
        check_services(settings)
        shown = Exposition()
        server = shown.serve(settings.metrics_host, settings.metrics_port)
        log.info("metrics are served", host=settings.metrics_host, port=server.server_port)
        job = Job(settings, spark_session(settings.spark), shown)
    except InvalidConfig as error:
        print("wrong settings; nothing was started:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        raise SystemExit(USAGE) from None
    except PortTaken as error:
        print(f"{error}; nothing was started", file=sys.stderr)
        raise SystemExit(FAILED) from None
    except SinkError as error:
        print(f"{error}; nothing was started", file=sys.stderr)
        raise SystemExit(UNREACHABLE if isinstance(error, Unavailable) else FAILED) from None

    def stop(_signal: int, _frame: FrameType | None) -> None:
        job.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    raise SystemExit(job.run())


def main() -> None:
    """The console script."""
    typer.run(run)
