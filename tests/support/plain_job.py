"""The job without Spark on a real Kafka and Redis: a batch whenever a test says so, or always.

each batch: what was published since the last one, through both operators as a replay runs them, and
through the job's own writer; then what it changed, to the journal's topic
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Self, cast

from pyspark.sql import DataFrame

from simulation.replay.batches import Replay
from simulation.replay.recorded import RecordedTopics
from simulation.replay.run import Readers
from sinks.exposition import Exposition
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from sources.records import Record
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.periodic import Periodic
from streaming.query.batch import BatchWriter
from streaming.sink_retry import SinkRetry
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.migration_watcher import MigrationWatcher
from streaming.watchdog import Progress
from tests.faults.job import Frame, Offsets
from tests.faults.topics import Claims
from tests.support.opening import keep_alive, server_ms
from tests.support.reports import bundle
from trimtab.cluster.job_settings import to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.ownership import Transition
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

READS: Final = (keys.LOAD_REPORTS, keys.CONTROL, keys.OWNERSHIP)
INTAKE: Final = IntakeSettings(sample_interval=1.0)

HELD: Final = {
    "hot:1": {bundle(i, 16): 100.0 + i for i in range(12)},
    "warm:1": {bundle(i, 16): 10.0 + i for i in range(12, 15)},
    "cold:1": {bundle(15, 16): 1.0},
}
"""Bundles' messages/s, by broker: a fleet out of balance."""

CPU: Final = {"hot:1": 85.0, "warm:1": 40.0, "cold:1": 5.0}
"""Percent, of the same brokers."""

_PAUSE_S: Final = 0.05


class PlainJob:
    """Of one cluster and one query, which reads from where the topics end now."""

    def __init__(
        self, kafka: str, redis_url: str, cluster: str, settings: Settings, query: str
    ) -> None:
        ensure_topics(kafka)
        self.cluster, self.query, self.number = cluster, query, 0
        self.topics = RecordedTopics(kafka)
        self._readers = Readers(partial(RecordedTopics, kafka))
        self.publisher = Publisher(kafka)
        self.client = redis_client(redis_url)
        self.store = OwnershipStore(self.client)
        self.replay = Replay(INTAKE, settings, followed={cluster})
        self._settings = settings
        self._relay = JournalRelay(self.client, self.publisher)
        self._read = self._ends()
        shown = Exposition()
        self._offsets = Offsets(query)
        leadership = Leadership(Claims().claim, shown)
        opener = StoreOpener(
            ClusterGate(self.client),
            self.store,
            partial(newest_records, kafka),
            leadership,
            shown,
            # No broker can hold a lease of before: here the data are never lost.
            closed_for_ms=0,
        )
        self._intents = IntentPublisher(self.publisher.publish, lambda: leadership.generation)
        migrations = Migrations(self.client)
        self._watcher = MigrationWatcher(migrations, opener, self._intents, shown)
        self._writer = BatchWriter(
            self.store,
            self.publisher,
            opener,
            self._offsets,
            SinkRetry(threading.Event(), Progress(), shown),
            lambda: server_ms(self.client),
            outcomes=Outcomes(self.client),
            migrations=migrations,
        )
        self.start(settings)

    def start(self, settings: Settings) -> None:
        """As a driver that is started with these, on the same checkpoint."""
        self._writer.settings, self._writer._told = to_record(INTAKE, settings), False
        self.replay.start(INTAKE, settings)

    def batch(self, at: int) -> None:
        """Read, decide, write, and carry the journal."""
        ends = self._ends()
        records: list[Record] = []
        ranges: dict[str, dict[str, tuple[int, int]]] = {}
        for (topic, partition), start in self._read.items():
            end = ends[topic, partition]
            if end > start:
                reader = self._readers.of(topic, partition)
                records += reader.every(topic, partition, start, end)
                ranges.setdefault(topic, {})[str(partition)] = (start, end)
        self._read = ends
        self._offsets.batch = (at, ranges)
        rows = self.replay.run(at, records)
        if rows:
            frame: Any = Frame(rows)
            self._writer(cast(DataFrame, frame), self.number)
        self.number += 1
        while self._relay.relay(self.cluster):
            pass

    def look(self) -> None:
        """At how far migrations have come; what follows is in the next batch."""
        self._watcher.look()
        self._intents.publish()

    def report(self, broker: str, cpu: float, rates: Mapping[str, float]) -> None:
        """As a broker with these bundles, at so many messages/s each."""
        stats = {
            name: BundleStats(msg_rate_in=rate, msg_throughput_in=100 * rate, topics=1)
            for name, rate in rates.items()
        }
        data = LocalBrokerData(
            cpu=Resource(cpu, 100.0),
            last_stats=stats,
            bundles=list(rates),
            msg_rate_in=sum(rates.values()),
            msg_throughput_in=100 * sum(rates.values()),
            start_timestamp=1,
        )
        said = Outgoing(keys.LOAD_REPORTS, f"{self.cluster}/{broker}", encode(data))
        self.publisher.publish([said])

    def report_all(self, added: float = 0.0) -> None:
        """As all brokers of `HELD`, so many points busier than in `CPU`."""
        for broker, rates in HELD.items():
            self.report(broker, CPU[broker] + added, rates)

    def claim_all(self) -> None:
        for broker, rates in HELD.items():
            self.claim(broker, rates)

    def claim(self, broker: str, bundles: Mapping[str, float]) -> None:
        """Have a broker own bundles, once the store is open."""
        keep_alive(self.client, self.cluster, [broker])
        for name in bundles:
            wanted = Transition(
                id=f"claim/{name}", bundle=name, event=Event.CLAIM, expect=NO_EPOCH, actor=broker
            )
            assert self.store.apply(self.cluster, wanted).accepted

    def _ends(self) -> dict[tuple[str, int], int]:
        return {
            (topic, partition): self.topics.end(topic, partition)
            for topic in READS
            for partition in self.topics.partitions(topic)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.__exit__()
        self.topics.close()
        self.client.close()


@contextmanager
def going_on(job: PlainJob) -> Iterator[None]:
    """Batch after batch, by Redis's clock."""
    failures: list[Exception] = []

    def batch() -> None:
        job.batch(server_ms(job.client))
        job.look()

    batches = Periodic("plain job", _PAUSE_S, batch, failures.append)
    batches.start()
    try:
        yield
    finally:
        batches.stop()
    assert failures == []
