"""Reads what a job recorded from Kafka: its batches, and the records each was made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import stamina
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from sinks.errors import KafkaUnavailable
from sinks.kafka import TIMEOUT_SECONDS, failure, settings
from sources.records import Record
from trimtab.wire import keys
from trimtab.wire.rows import BatchRecord


class Missing(LookupError):
    """Kafka no longer has what a batch read: retention or compaction has taken it."""


class RecordedTopics:
    """A reader of any topic by partition and offset; it joins no group and commits nothing."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._bootstrap = bootstrap
        reader = {"group.id": "trimtab-replay", "enable.auto.commit": False}
        ends = {"enable.partition.eof": False, "auto.offset.reset": "error"}
        self._consumer = Consumer(settings(bootstrap, client, **reader, **ends))

    def close(self) -> None:
        self._consumer.close()

    def batches(self) -> list[BatchRecord]:
        """Every record of trimtab.rounds in the order they were published, repetitions too."""
        return [
            msgspec.json.decode(record.value or b"", type=BatchRecord)
            for record in self.all(keys.ROUNDS)
        ]

    def end(self, topic: str, partition: int = 0) -> int:
        """The offset that the partition's next record will have."""
        return self.ends(topic, partition)[1]

    def newest_batches(self, number: int) -> list[BatchRecord]:
        """The last so many of them, in order."""
        low, high = self.ends(keys.ROUNDS, 0)
        return [
            msgspec.json.decode(record.value or b"", type=BatchRecord)
            for record in self.between(keys.ROUNDS, 0, max(low, high - number), high)
        ]

    def all(self, topic: str) -> Iterator[Record]:
        """What the topic holds now, partition after partition."""
        for partition in sorted(self.partitions(topic)):
            low, high = self.ends(topic, partition)
            yield from self.between(topic, partition, low, high)

    def read_by(self, batch: BatchRecord) -> Iterator[Record]:
        """What the batch read; raises Missing."""
        for topic, partitions in batch.offsets.items():
            for partition, (start, end) in partitions.items():
                found = 0
                for record in self.between(topic, int(partition), start, end):
                    found += 1
                    yield record
                if found != end - start:
                    raise Missing(
                        f"{topic}/{partition} has {found} of the {end - start} records from {start}"
                    )

    # The leader of a topic that was made a moment ago may not know it yet.
    @stamina.retry(on=KafkaUnavailable, timeout=30.0, wait_initial=0.1, wait_max=1.0)
    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """The offsets of the first record and of the one that will be next."""
        here = TopicPartition(topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            raise failure(self._bootstrap, f"looking at {topic}", error.args[0]) from error
        return low, high

    def partitions(self, topic: str) -> Iterable[int]:
        """Those of a topic, none if there is no such topic."""
        try:
            found = self._consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
        except KafkaException as error:
            raise failure(self._bootstrap, f"looking at {topic}", error.args[0]) from error
        return list(found.partitions)

    def between(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        """The records with these offsets, one read at a time; raises Missing."""
        here = TopicPartition(topic, partition, start)
        self._consumer.assign([here])
        position = start
        while position < end:
            message = self._consumer.poll(TIMEOUT_SECONDS)
            if message is None:
                # Transaction markers and compacted records have offsets but are never delivered.
                position = self._consumer.position([here])[0].offset
                if position < end:
                    raise Missing(f"{topic}/{partition} has nothing at {position}, before {end}")
                return
            error = message.error()
            if error is not None:
                raise failure(self._bootstrap, f"reading {topic}", error)
            position = (message.offset() or 0) + 1
            if position <= end:
                yield _record(message)


def _record(message: Message) -> Record:
    # confluent-kafka's stubs leave these two untyped.
    stamp: Any = message.timestamp()
    headers: Any = message.headers() or []
    return Record(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        at=stamp[1],
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
