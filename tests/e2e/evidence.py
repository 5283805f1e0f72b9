"""What a run of the job left behind: what it read, what it said, what it remembers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from redis import Redis

from simulation.replay.batches import distinct
from simulation.replay.recorded import RecordedTopics
from sources.records import Record
from streaming.config import JobConfig
from tests.support.state import cluster_snapshots
from trimtab.intake.snapshot import Snapshot
from trimtab.wire import keys
from trimtab.wire.columns import unpack
from trimtab.wire.rounds import BatchRecord, RoundRecord


@dataclass(frozen=True, slots=True)
class Report:
    """A report as it stands in Kafka; ``said`` is its JSON as plain values."""

    broker: str
    position: tuple[int, int]
    """Session and sequence."""
    said: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of a job that has been stopped; its Kafka and Redis still answer."""

    topics: RecordedTopics
    config: JobConfig
    batches: list[BatchRecord]
    """Those that were committed and said something, in order."""
    read: dict[int, list[Report]]
    """What each of them read."""
    snapshots: dict[str, Snapshot]
    """The job's state after the last of them."""
    redis_keys: set[str]

    @property
    def rounds(self) -> Iterator[tuple[int, RoundRecord]]:
        """Each with its batch's number."""
        return ((batch.batch, record) for batch in self.batches for record in batch.rounds)

    @property
    def last(self) -> int:
        """The number of the last batch."""
        return self.batches[-1].batch

    def reports(self, batch: int) -> list[Report]:
        """All that the job had read when it ended the batch, the newest last."""
        read = (report for number in self.read if number <= batch for report in self.read[number])
        return sorted(read, key=lambda report: report.position)

    def newest(self, batch: int) -> dict[str, dict[str, Any]]:
        """What each broker had said last when the job ended the batch."""
        return {report.broker: report.said for report in self.reports(batch)}


def gather(
    topics: RecordedTopics, config: JobConfig, client: Redis, spark: SparkSession, committed: int
) -> Evidence:
    """Of the job with this configuration, whose last committed batch has this number."""
    batches = [batch for batch in distinct(topics.batches()) if batch.batch <= committed]
    packed = cluster_snapshots(spark, config.checkpoint)
    return Evidence(
        topics=topics,
        config=config,
        batches=batches,
        read={batch.batch: [*map(_report, _reports(topics, batch))] for batch in batches},
        snapshots={broker: unpack(value, Snapshot) for (_, broker), value in packed.items()},
        redis_keys={key.decode() for key in client.scan_iter("*")},
    )


def show(evidence: Evidence) -> None:
    """Print what the brokers said last and how each kind of round ended."""
    for broker, said in sorted(evidence.newest(evidence.last).items()):
        resources = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
        used = ", ".join(
            f"{name} {said[name]['usage']:.5g} of {said[name]['limit']:g}" for name in resources
        )
        print(f"\n{broker} said: {used}; {said['msgRateIn']:.1f} messages/s in")
        print(f"  bundles: {', '.join(sorted(said['lastStats']))}")
    last_of: dict[tuple[int, str], RoundRecord] = {}
    for _, record in evidence.rounds:
        last_of[record.settings_version, record.skipped] = record
    for record in last_of.values():
        print(f"round {record.round}: {msgspec.json.encode(record).decode()}")


def _reports(topics: RecordedTopics, batch: BatchRecord) -> Iterator[Record]:
    return (record for record in topics.read_by(batch) if record.topic == keys.LOAD_REPORTS)


def _report(record: Record) -> Report:
    headers = dict(record.headers)
    return Report(
        broker=(record.key or b"").decode().split("/")[1],
        position=(
            int(headers[keys.SESSION_HEADER] or b""),
            int(headers[keys.SEQUENCE_HEADER] or b""),
        ),
        said=msgspec.json.decode(record.value or b""),
    )
