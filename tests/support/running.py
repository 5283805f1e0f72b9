"""The real job in this process, on a session that tests share."""

from __future__ import annotations

import threading
from typing import Self

import msgspec
import redis
from pyspark.sql import SparkSession

from simulation.replay.batch_records import decode_batches
from simulation.replay.batches import Replay, distinct
from simulation.replay.recorded import RecordedTopics
from sinks.exposition import Exposition
from sinks.kafka.publisher import Outgoing, Publisher
from sources.records import Record
from streaming.config import JobConfig
from streaming.driver import Driver
from streaming.job import check_services
from streaming.shutdown import Shutdown
from tests.support.verdicts import replayed
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.rounds import BatchRecord

PATIENCE = 600.0
"""Seconds for what takes one on a quiet machine."""


class Running:
    """Started and stopped by ``with``, any number of times on one checkpoint."""

    def __init__(self, config: JobConfig, spark: SparkSession) -> None:
        self.config = config
        self._spark = spark
        self.topics = RecordedTopics(config.kafka.bootstrap)
        self.exit_codes: list[int] = []
        self._recorded: list[Record] = []
        """What was read so far of trimtab.rounds: tests look at its end several times a second."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        check_services(self.config)
        self.shown = Exposition()
        self.job = Driver(self.config, self._spark, self.shown, Shutdown(), self.exit_codes.append)
        self._thread = threading.Thread(target=self._run, name="job", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.job.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the job does not stop"

    def _run(self) -> None:
        self.exit_codes.append(self.job.run())

    def metric(self, name: str, **labels: str) -> float:
        """A sample's value as Prometheus would read it now; 0 while there is none."""
        return sum(
            sample.value
            for family in self.shown.registry.collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def await_metric(self, at_least: float, name: str, **labels: str) -> None:
        eventually(
            lambda: self.metric(name, **labels) >= at_least,
            f"{name}{labels} at {at_least}",
            PATIENCE,
            pause=0.2,
        )

    def batches(self, cluster: str) -> list[BatchRecord]:
        """What was recorded of the batches in which the cluster held a round."""
        return [
            batch
            for batch in self.all_batches()
            if any(record.cluster == cluster for record in batch.rounds)
        ]

    def all_batches(self) -> list[BatchRecord]:
        """Each batch once."""
        known = self._recorded[-1].offset + 1 if self._recorded else 0
        low, high = self.topics.whole(keys.ROUNDS)
        self._recorded += self.topics.between(keys.ROUNDS, 0, max(low, known), high)
        return list(distinct(decode_batches(self._recorded)))

    def replayed(self, query: str) -> Replay:
        """An undisturbed run fed the query's recorded batches."""
        return replayed(self.topics, self.config, query)

    def pause(self, cluster: str) -> None:
        """Send the cluster's operator an intent to decide nothing."""
        intent = Intent(id="pause", kind=IntentKind.PAUSE, cluster=cluster)
        value = msgspec.json.encode(intent)
        Publisher(self.config.kafka.bootstrap).publish([Outgoing(keys.CONTROL, cluster, value)])

    def await_rest(self, client: redis.Redis, cluster: str) -> None:
        """Until the pause holds and the journal has been relayed and read."""
        eventually(lambda: self._rests(client, cluster), "rest", PATIENCE, pause=0.2)

    def await_rest_of_journal(self, client: redis.Redis, cluster: str) -> None:
        """Until all that brokers and job have changed is on Kafka."""
        journal = keys.journal_key(cluster)
        eventually(lambda: client.xlen(journal) == 0, "an empty journal", PATIENCE)

    def _rests(self, client: redis.Redis, cluster: str) -> bool:
        batches = self.batches(cluster)
        paused = bool(batches) and batches[-1].rounds[-1].skipped == "paused"
        return paused and client.xlen(keys.journal_key(cluster)) == 0
