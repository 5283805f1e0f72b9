"""What Kafka still has, in memory: for readers of recorded topics, without Kafka."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from simulation.replay.recorded import Missing, RecordedTopics
from sinks.kafka.publisher import Outgoing
from sources.records import Record


class KeptTopics(RecordedTopics):
    """Topics of one partition; what was published before ``low`` of a topic is gone."""

    def __init__(self) -> None:  # no consumer
        self.records: dict[str, list[Record]] = defaultdict(list)
        self.low: dict[str, int] = defaultdict(int)

    def publish(self, records: Iterable[Outgoing], at: int = 0) -> None:
        """Stamped with a time in epoch milliseconds."""
        for topic, key, value, headers, _ in records:
            log = self.records[topic]
            log.append(Record(topic, 0, len(log), at, key.encode(), value, headers))

    def close(self) -> None:
        """Nothing to close."""

    def partitions(self, topic: str) -> Iterable[int]:
        return [0] if topic in self.records else []

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        assert partition == 0
        return self.low[topic], len(self.records[topic])

    def offset_at(self, topic: str, partition: int, at_ms: int) -> int:
        low, high = self.ends(topic, partition)
        kept = self.records[topic][low:]
        return next((record.offset for record in kept if record.at >= at_ms), high)

    def between(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        low, _ = self.ends(topic, partition)
        if start < end and start < low:
            raise Missing(f"{topic}/{partition} no longer has what was at {start}")
        yield from self.records[topic][start:end]
