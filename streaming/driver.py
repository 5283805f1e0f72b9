"""The driver that acts, put together: the query, and the threads around it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sinks.kafka.generation import claim
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.publisher import Publisher
from sinks.kafka.reporting_clusters import reporting_clusters
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.explanations import Explanations
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.lease_scan import LeaseScan
from sinks.redis.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.pruning import Pruner
from sinks.redis.server.connections import redis_client
from streaming.config import JobConfig
from streaming.leader.heartbeat import Heartbeat
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.metrics.exposition import Exposition
from streaming.metrics.progress import ProgressListener
from streaming.periodic import Periodic
from streaming.query.batch import BatchWriter
from streaming.query.offsets import OffsetLog
from streaming.query_runner import QueryRunner
from streaming.shutdown import FAILED, STUCK, Shutdown
from streaming.sink_retry import SinkRetry
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.lease_watcher import REDIS, LeaseWatcher
from streaming.watch.pruning import PAUSE_SECONDS, Pruning
from streaming.watch.relay import RelayThread
from streaming.watch.server_clock import ServerClock
from streaming.watchdog import LOOK_SECONDS, Progress, Watchdog
from trimtab.cluster.job_settings import told
from trimtab.ownership import LONGEST_LEASE_MS

log = structlog.get_logger()


class Driver:
    """Holds the claim from its making until `run` ends.

    ``halt`` ends the process with an exit code where it does not end by itself.
    """

    def __init__(
        self,
        config: JobConfig,
        spark: SparkSession,
        shown: Exposition,
        ending: Shutdown,
        halt: Callable[[int], None],
    ) -> None:
        self._spark = spark
        self._shown = shown
        self._ending = ending
        self._halt = halt
        kafka = config.kafka
        client = redis_client(config.redis_url.get_secret_value())
        publisher = Publisher(kafka.bootstrap, kafka.client)
        store, roll = OwnershipStore(client), LeaseScan(client)
        self._tenure = tenure = Leadership(
            lambda above: claim(kafka.bootstrap, "trimtab-job", kafka.client, above), shown
        )
        progress = Progress()
        opener = StoreOpener(
            ClusterGate(client, replicas=config.redis_replicas),
            store,
            lambda cluster: newest_records(
                kafka.bootstrap, cluster, kafka.client, tenure.generation
            ),
            tenure,
            shown,
            waits=lambda: progress.waiting("the ownership store"),
        )
        opener.ended = ending
        self._look_ahead = partial(
            opener.look_ahead, partial(reporting_clusters, kafka.bootstrap, kafka.client)
        )
        announcer = IntentPublisher(publisher.publish, lambda: tenure.generation)
        opener.doubted = lambda cluster, level: announcer.doubt(cluster, REDIS, level)
        clock = ServerClock(
            Leases(client).server_time,
            time.monotonic,
            LONGEST_LEASE_MS / 1000,
            config.clock_margin_seconds,
        )
        watcher = LeaseWatcher(roll, clock, opener, announcer, shown)
        heartbeat = Heartbeat(tenure, clock.away_seconds, config.yield_seconds, ending)
        patience = SinkRetry(ending, progress, shown)
        offsets = OffsetLog(spark, config.checkpoint)
        writer = BatchWriter(store, publisher, opener, offsets, patience, clock.estimate_ms)
        writer.explanations = Explanations(client)
        writer.settings = told(config.intake_settings(), config.round_settings())
        longest = config.watchdog_seconds + config.trigger_seconds
        self._watchdog = Watchdog(progress, math.ceil(longest / LOOK_SECONDS), self._stuck)
        self._keeper = QueryRunner(config, spark, writer, self._watchdog, ending)
        pruning = Pruning(Pruner(client), lambda: opener.clusters, lambda: tenure.generation, shown)
        # In the order they stop: nothing of ours is under way when the last heartbeat is.
        self._threads = (
            RelayThread(JournalRelay(client, publisher), lambda: opener.clusters, shown),
            Periodic("pruning", PAUSE_SECONDS, pruning.look, self._broken),
            Periodic("watcher", config.watch_seconds, watcher.look, self._broken),
            Periodic("heartbeat", config.heartbeat_seconds, heartbeat.beat, self._broken),
        )
        self._guard = Periodic("watchdog", LOOK_SECONDS, self._watchdog.look, self._broken)

    def run(self) -> int:
        """Until ``ending`` is set, by whomever; an exit code."""
        listener = ProgressListener(self._shown, self._watchdog.progress)
        self._spark.streams.addListener(listener)
        for thread in (self._guard, *self._threads):
            thread.start()
        log.info("job runs", generation=self._tenure.generation)
        try:
            self._look_ahead()
            self._keeper.run(self._shown)
        finally:
            self._watchdog.hurry()
            for thread in self._threads:
                thread.stop()
            with suppress(Py4JError, ConnectionError):
                self._spark.streams.removeListener(listener)
            # Whoever stands by takes over now.
            self._tenure.close()
            self._guard.stop()
        return self._ending.code

    def stop(self) -> None:
        self._ending.set()

    def _broken(self, error: Exception) -> None:
        self._ending.because(FAILED, str(error))

    def _stuck(self, cause: str) -> None:
        log.critical("the driver is stuck", cause=cause)
        self._halt(self._ending.code if self._ending.is_set() else STUCK)
