"""Assembles the active driver: the query, and the threads around it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sinks.exposition import Exposition
from sinks.kafka.generation import claim
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.publisher import Publisher
from sinks.kafka.reporting_clusters import reporting_clusters
from sinks.redis.answers.explanations import Explanations
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.leasing.lease_scan import LeaseScan
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.pruning import Pruner
from sinks.redis.server.connections import redis_client
from streaming.config import JobConfig
from streaming.leader.heartbeat import Heartbeat
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.metrics.progress import ProgressListener
from streaming.periodic import Periodic
from streaming.query.batch import BatchWriter
from streaming.query.offsets import OffsetLog
from streaming.query.reports.rounds_due import RoundsDue, due_file
from streaming.query_runner import QueryRunner
from streaming.shutdown import FAILED, STUCK, Shutdown
from streaming.sink_retry import SinkRetry
from streaming.sizing import SizeWatch
from streaming.supervisor import tell_alive, tell_ready, tell_stopping
from streaming.watch.durability import PAUSE_SECONDS as DURABILITY_SECONDS
from streaming.watch.durability import Durability
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.lease_watcher import REDIS, LeaseWatcher
from streaming.watch.migration_watcher import PAUSE_SECONDS as MIGRATIONS_SECONDS
from streaming.watch.migration_watcher import MigrationWatcher
from streaming.watch.pruning import PAUSE_SECONDS, Pruning
from streaming.watch.relay import RelayThread
from streaming.watch.server_clock import ServerClock
from streaming.watchdog import LOOK_SECONDS, Progress, SparkLoad, Watchdog
from trimtab.cluster.job_settings import to_record
from trimtab.ownership import LONGEST_LEASE_MS

log = structlog.get_logger()


class Driver:
    """Holds the claim from its construction until `run` returns.

    ``halt`` ends the process with an exit code if it does not end by itself.
    """

    def __init__(
        self,
        config: JobConfig,
        spark: SparkSession,
        shown: Exposition,
        shutdown: Shutdown,
        halt: Callable[[int], None],
    ) -> None:
        self._spark = spark
        self._shown = shown
        self._shutdown = shutdown
        self._halt = halt
        kafka = config.kafka
        client = redis_client(config.redis_url.get_secret_value())
        publisher = Publisher(kafka.bootstrap, kafka.client)
        store, lease_scan = OwnershipStore(client), LeaseScan(client)
        self._leadership = leadership = Leadership(
            lambda above: claim(kafka.bootstrap, "trimtab-job", kafka.client, above), shown
        )
        progress = Progress()
        intent_publisher = IntentPublisher(publisher.publish, lambda: leadership.generation)
        opener = StoreOpener(
            ClusterGate(client, replicas=config.redis_replicas),
            store,
            lambda cluster: newest_records(
                kafka.bootstrap, cluster, kafka.client, leadership.generation
            ),
            leadership,
            shown,
            waits=lambda: progress.waiting("the ownership store"),
            ended=shutdown,
            doubted=lambda cluster, level: intent_publisher.doubt(cluster, REDIS, level),
        )
        self._look_ahead = partial(
            opener.look_ahead, partial(reporting_clusters, kafka.bootstrap, kafka.client)
        )
        clock = ServerClock(
            Leases(client).server_time,
            time.monotonic,
            LONGEST_LEASE_MS / 1000,
            config.clock_margin_seconds,
        )
        watcher = LeaseWatcher(lease_scan, clock, opener, intent_publisher, shown)
        migrations = MigrationWatcher(Migrations(client), opener, intent_publisher, shown)
        heartbeat = Heartbeat(leadership, clock.away_seconds, config.yield_seconds, shutdown)
        retry = SinkRetry(shutdown, progress, shown)
        offsets = OffsetLog(spark, config.checkpoint)
        writer = BatchWriter(
            store,
            publisher,
            opener,
            offsets,
            retry,
            clock.estimate_ms,
            explanations=Explanations(client),
            outcomes=Outcomes(client),
            plans=KeptPlans(client),
            migrations=Migrations(client),
            settings=to_record(config.intake_settings(), config.round_settings()),
            size=SizeWatch(config.size, shown),
            due=RoundsDue(due_file(), config.round_settings().round.interval),
            suspect=watcher.suspect,
        )
        longest = config.watchdog_seconds + config.sized_trigger()
        looks = math.ceil(longest / LOOK_SECONDS)
        self._watchdog = Watchdog(progress, looks, self._stuck, tell_alive, SparkLoad().computing)
        self._runner = QueryRunner(config, spark, writer, self._watchdog, shutdown)
        pruning = Pruning(
            Pruner(client), lambda: opener.clusters, lambda: leadership.generation, shown
        )
        durability = Durability(client, shown)
        # A new job's first scrape must not call a durable Redis volatile.
        durability.look()
        # In the order they stop: all our other work has stopped when the heartbeat stops.
        self._threads = (
            RelayThread(JournalRelay(client, publisher), lambda: opener.clusters, shown),
            Periodic("pruning", PAUSE_SECONDS, pruning.look, self._broken),
            Periodic("durability", DURABILITY_SECONDS, durability.look, self._broken),
            Periodic("watcher", config.watch_seconds, watcher.look, self._broken),
            Periodic("migrations", MIGRATIONS_SECONDS, migrations.look, self._broken),
            Periodic("heartbeat", config.heartbeat_seconds, heartbeat.beat, self._broken),
        )
        self._guard = Periodic("watchdog", LOOK_SECONDS, self._watchdog.look, self._broken)

    def run(self) -> int:
        """Run until shutdown is requested; returns the exit code."""
        listener = ProgressListener(self._shown, self._watchdog.progress)
        self._spark.streams.addListener(listener)
        for thread in (self._guard, *self._threads):
            thread.start()
        log.info("job runs", generation=self._leadership.generation)
        tell_ready(f"active, generation {self._leadership.generation}")
        try:
            self._look_ahead()
            self._runner.run(self._shown)
        finally:
            tell_stopping()
            self._watchdog.hurry()
            for thread in self._threads:
                thread.stop()
            with suppress(Py4JError, ConnectionError):
                self._spark.streams.removeListener(listener)
            # A standby takes over now.
            self._leadership.close()
            self._guard.stop()
        return self._shutdown.code

    def stop(self) -> None:
        self._shutdown.set()

    def _broken(self, error: Exception) -> None:
        self._shutdown.because(FAILED, str(error))

    def _stuck(self, cause: str) -> None:
        log.critical("the driver is stuck", cause=cause)
        self._halt(self._shutdown.code if self._shutdown.is_set() else STUCK)
