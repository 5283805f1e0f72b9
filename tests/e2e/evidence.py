"""What a run of the job left behind: what it read, what it said, what it remembers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from pyspark.sql import SparkSession

from trimtab.snapshot import Snapshot
from trimtab.wire import keys
from trimtab.wire.columns import unpack
from trimtab.wire.rows import BatchRecord, RoundRecord

_CLUSTER_OPERATOR = 0
"""Spark numbers stateful operators from the query's end."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report as it stands in Kafka; ``said`` is its JSON as plain values."""

    broker: str
    partition: str
    offset: int
    position: tuple[int, int]
    """Session and sequence."""
    said: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of a job that has ended."""

    reports: list[Report]
    batches: list[BatchRecord]
    """Those that said something, in order."""
    snapshots: dict[str, Snapshot]
    """The job's state after the last batch with a round."""
    commands: int
    dead_letters: int
    redis_keys: set[str]

    @property
    def rounds(self) -> Iterator[RoundRecord]:
        return (record for batch in self.batches for record in batch.rounds)

    @property
    def last_round(self) -> int:
        """The number of the last batch with a round: when ``snapshots`` were read."""
        return max(batch.batch for batch in self.batches if batch.rounds)

    def read_by(self, number: int) -> list[Report]:
        """The reports that the job had read when it ended the batch."""
        ends: dict[str, int] = {}
        for batch in self.batches:
            if batch.batch <= number:
                for partition, (_, end) in batch.offsets.get(keys.LOAD_REPORTS, {}).items():
                    ends[partition] = max(end, ends.get(partition, 0))
        return [report for report in self.reports if report.offset < ends.get(report.partition, 0)]

    def newest_by(self, number: int) -> dict[str, dict[str, Any]]:
        """What each broker had said last when the job ended the batch."""
        ordered = sorted(self.read_by(number), key=lambda report: report.position)
        return {report.broker: report.said for report in ordered}


def show(evidence: Evidence) -> None:
    """Print what the brokers said last and how each kind of round ended."""
    for broker, said in sorted(evidence.newest_by(evidence.last_round).items()):
        resources = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
        used = ", ".join(
            f"{name} {said[name]['usage']:.4g} of {said[name]['limit']:g}" for name in resources
        )
        print(f"\n{broker} said: {used}; {said['msgRateIn']:.1f} messages/s in")
        print(f"  bundles: {', '.join(sorted(said['lastStats']))}")
    shown: dict[tuple[int, str], RoundRecord] = {}
    for record in evidence.rounds:
        shown[record.settings_version, record.skipped] = record
    for record in shown.values():
        print(f"round {record.round}: {msgspec.json.encode(record).decode()}")


class Listener:
    """Follows trimtab.rounds while the job runs."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._passed = 0

    def wait(self, wanted: Callable[[BatchRecord], bool], seconds: float) -> BatchRecord:
        """The first wanted batch that was not passed yet; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for batch in batches(self._bootstrap)[self._passed :]:
                self._passed += 1
                if wanted(batch):
                    return batch
            time.sleep(1)
        raise TimeoutError(f"not within {seconds} s, in {self._passed} batches")


def batches(bootstrap: str) -> list[BatchRecord]:
    with _records(bootstrap, keys.ROUNDS) as records:
        return [msgspec.json.decode(r.value() or b"", type=BatchRecord) for r in records]


def reports(bootstrap: str) -> list[Report]:
    with _records(bootstrap, keys.LOAD_REPORTS) as records:
        return [_report(record) for record in records]


def count(bootstrap: str, topic: str) -> int:
    with _records(bootstrap, topic) as records:
        return sum(1 for _ in records)


def snapshots_after(spark: SparkSession, checkpoint: str, batch: int) -> dict[str, Snapshot]:
    """Operator ②'s snapshots at the end of a committed batch, by broker."""
    rows = (
        spark.read.format("statestore")
        .option("operatorId", _CLUSTER_OPERATOR)
        .option("stateVarName", "snapshots")
        .option("batchId", batch)
        .load(checkpoint)
        .select("user_map_key.broker", "user_map_value.payload")
        .collect()
    )
    return {row.broker: unpack(bytes(row.payload), Snapshot) for row in rows}


def _report(record: Message) -> Report:
    headers = dict(record.headers() or [])
    session, sequence = (
        int(headers[name] or b"") for name in (keys.SESSION_HEADER, keys.SEQUENCE_HEADER)
    )
    return Report(
        broker=(record.key() or b"").decode().split("/")[1],
        partition=str(record.partition()),
        offset=record.offset() or 0,
        position=(session, sequence),
        said=msgspec.json.decode(record.value() or b""),
    )


@contextmanager
def _records(bootstrap: str, topic: str) -> Iterator[Iterator[Message]]:
    """All that the topic holds now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "evidence"})
    partitions = [
        TopicPartition(topic, partition, OFFSET_BEGINNING)
        for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions
    ]
    left = sum(high - low for low, high in map(consumer.get_watermark_offsets, partitions))
    consumer.assign(partitions)
    try:
        yield (record for _ in range(left) if (record := consumer.poll(10)) is not None)
    finally:
        consumer.close()
