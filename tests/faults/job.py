"""The job without Spark: the operators as a replay runs them, everything around them the real one.

each batch, twenty times a second:
  what was published since the last one, through both operators       simulation.replay.batches
  what they decided, to Redis and the topics                          streaming.query.batch
beside it, each on its thread: the watchers of leases and migrations, the relay of the journal
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from pyspark.sql import DataFrame

from simulation.replay.batch_records import decode_batches
from simulation.replay.batches import Replay
from sinks.errors import Fenced, StoreUnavailable
from sinks.exposition import Exposition
from sinks.kafka.publisher import Outgoing
from sinks.redis.answers.explanations import Explanations
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.leasing.lease_scan import LeaseScan
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from sources.records import Record as Entry
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.periodic import Periodic
from streaming.query.batch import BatchWriter
from streaming.query.offsets import OffsetLog
from streaming.sink_retry import SinkRetry
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.lease_watcher import REDIS, LeaseWatcher
from streaming.watch.migration_watcher import MigrationWatcher
from streaming.watch.relay import RelayThread
from streaming.watch.server_clock import ServerClock
from streaming.watchdog import Progress
from tests.faults.topics import Claims, Topics
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rounds import BatchRecord, RoundRecord
from trimtab.wire.rows import Row

_READS: Final = (keys.LOAD_REPORTS, keys.CONTROL, keys.OWNERSHIP)
_PAUSE_S: Final = 0.05
_WATCH_S: Final = 0.1
INTAKE: Final = IntakeSettings(sample_interval=1.0)


class Offsets(OffsetLog):
    """The offsets of each batch, known before it runs, as Spark's offset log has them."""

    def __init__(self, query: str) -> None:  # no Spark
        self.query = query
        self.batch: tuple[int, dict[str, dict[str, tuple[int, int]]]] = (0, {})

    def query_id(self) -> str:
        return self.query

    def ranges(self, batch: int) -> tuple[int, dict[str, dict[str, tuple[int, int]]]]:
        del batch
        return self.batch


class Frame:
    """Rows, in place of the data frame that `BatchWriter` reads."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def collect(self) -> list[Row]:
        return self._rows


class Job:
    """Starts once and ends once. ``lease_s``: the longest lease that it grants."""

    def __init__(  # noqa: PLR0913 - what the real one reads from its settings
        self,
        cluster: str,
        redis_url: str,
        topics: Topics,
        claims: Claims,
        settings: Mapping[str, object],
        lease_s: float,
    ) -> None:
        self.cluster, self.topics = cluster, topics
        self.settings = Settings.parse(dict(settings))
        self.shown = Exposition()
        self.client = redis_client(redis_url)
        self.ahead_s = 0.0
        """How far Redis's clock is ahead of the true one, as the watcher sees it."""
        self._replay = Replay(INTAKE, self.settings, explains=True)
        self._number = 0
        self._read = dict.fromkeys(_READS, 0)
        self._offsets = Offsets(f"{cluster}-query")
        self._ended = threading.Event()
        self.leadership = Leadership(claims.claim, self.shown)
        store, lease_scan = OwnershipStore(self.client), LeaseScan(self.client)
        intent_publisher = IntentPublisher(topics.publish, lambda: self.leadership.generation)
        self.opener = StoreOpener(
            ClusterGate(self.client, round(1000 * lease_s)),
            store,
            self.journalled,
            self.leadership,
            self.shown,
            closed_for_ms=round(1100 * lease_s),
            ended=self._ended,
            doubted=lambda of, level: intent_publisher.doubt(of, REDIS, level),
        )
        leases = Leases(self.client)
        clock = ServerClock(
            lambda: leases.server_time() + self.ahead_s, time.monotonic, lease_s, lease_s / 10
        )
        watcher = LeaseWatcher(lease_scan, clock, self.opener, intent_publisher, self.shown)
        retry = SinkRetry(self._ended, Progress(), self.shown)
        self._writer = BatchWriter(
            store,
            topics,
            self.opener,
            self._offsets,
            retry,
            clock.estimate_ms,
            explanations=Explanations(self.client),
            outcomes=Outcomes(self.client),
            plans=KeptPlans(self.client),
            migrations=Migrations(self.client),
            suspect=watcher.suspect,
        )
        migrations = MigrationWatcher(
            Migrations(self.client), self.opener, intent_publisher, self.shown
        )
        self._threads = (
            RelayThread(
                JournalRelay(self.client, topics), lambda: self.opener.clusters, self.shown
            ),
            Periodic("watcher", _WATCH_S, watcher.look, self._failed),
            Periodic("migrations", _WATCH_S, migrations.look, self._failed),
        )
        self._thread = threading.Thread(target=self._run, name="job", daemon=True)
        self.failure: Exception | None = None

    def start(self) -> None:
        self._thread.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Return once all its threads have ended; raises the error that it failed with."""
        self._ended.set()
        self._thread.join(30.0)
        for thread in self._threads:
            thread.stop()
        self.client.close()
        if self.failure is not None:
            raise self.failure

    def tell(self, kind: IntentKind, **more: object) -> None:
        """Publish an intent."""
        asked = {"id": f"test-{self.topics.end(keys.CONTROL)}", "kind": kind, **more}
        intent = msgspec.convert({"cluster": self.cluster, **asked}, Intent)
        self.topics.publish([Outgoing(keys.CONTROL, self.cluster, msgspec.json.encode(intent))])

    def journalled(self, cluster: str) -> dict[str, Record]:
        """The newest records that were published."""
        newest: dict[str, Record] = {}
        for change in self.changes():
            known = newest.get(change.bundle)
            if change.cluster == cluster and (known is None or change.record.epoch > known.epoch):
                newest[change.bundle] = change.record
        return newest

    def changes(self) -> list[Change]:
        """The journal as it was published."""
        entries = self.topics.all(keys.OWNERSHIP)
        return [msgspec.json.decode(entry.value or b"", type=Change) for entry in entries]

    def batches(self) -> list[BatchRecord]:
        return decode_batches(self.topics.all(keys.ROUNDS))

    def rounds(self) -> list[RoundRecord]:
        return [record for batch in self.batches() for record in batch.rounds]

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            try:
                self._batch()
            except (Fenced, StoreUnavailable) as error:
                if not self._ended.is_set():
                    self._failed(error)

    def _batch(self) -> None:
        at = time.time_ns() // 1_000_000
        ends = {topic: self.topics.end(topic) for topic in _READS}
        entries: list[Entry] = []
        ranges: dict[str, dict[str, tuple[int, int]]] = {}
        for topic, start in self._read.items():
            if ends[topic] > start:
                entries += self.topics.all(topic, start, ends[topic])
                ranges[topic] = {"0": (start, ends[topic])}
        self._read = ends
        rows = self._replay.run(at, entries)
        self._offsets.batch = (at, ranges)
        if rows:
            frame: Any = Frame(rows)
            self._writer(cast(DataFrame, frame), self._number)
            self._number += 1
