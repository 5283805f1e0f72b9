"""Reads a job's recording from Kafka: its batches, and the records that each read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import stamina
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from simulation.replay.batch_records import decode_batches, read_in
from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.clients import TIMEOUT_SECONDS, failure, settings
from sources.records import Record
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord

log = structlog.get_logger()

_GONE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class Missing(LookupError):
    """Raised if Kafka no longer has what a batch read: retention or compaction removed it."""


class RecordedTopics:
    """A reader of any topic by partition and offset; it joins no group and commits nothing."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._bootstrap = bootstrap
        reader = {"group.id": "trimtab-replay", "enable.auto.commit": False}
        ends = {"enable.partition.eof": False, "auto.offset.reset": "error"}
        self._consumer = Consumer(settings(bootstrap, client, **reader, **ends))
        self._next: tuple[str, int, int] | None = None
        """Topic, partition and offset that the consumer reads next."""

    def close(self) -> None:
        self._consumer.close()

    def batches(self) -> list[BatchRecord]:
        """Every batch on trimtab.rounds in the order of publication, including repetitions."""
        return decode_batches(self.between(keys.ROUNDS, 0, *self.whole(keys.ROUNDS)))

    def end(self, topic: str, partition: int = 0) -> int:
        """The offset that the partition's next record will have."""
        return self.ends(topic, partition)[1]

    def newest_batches(self, number: int) -> list[BatchRecord]:
        """The batches of the last ``number`` records, in order."""
        low, high = self.whole(keys.ROUNDS)
        return decode_batches(self.between(keys.ROUNDS, 0, max(low, high - number), high))

    def all(self, topic: str) -> Iterator[Record]:
        """Yield the topic's present records, partition after partition."""
        for partition in sorted(self.partitions(topic)):
            low, high = self.ends(topic, partition)
            yield from self.between(topic, partition, low, high)

    def read_by(self, batch: BatchRecord) -> Iterator[Record]:
        """Yield the records that the batch read; raises Missing."""
        for topic, partition, start, end in read_in(batch):
            yield from self.every(topic, partition, start, end)

    # The leader of a topic that was just created may not know it yet.
    @stamina.retry(on=KafkaUnavailable, timeout=30.0, wait_initial=0.1, wait_max=1.0)
    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """The offsets of the first record and of the next one to be written."""
        here = TopicPartition(topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            raise failure(self._bootstrap, f"looking at {topic}", error.args[0]) from error
        return low, high

    def whole(self, topic: str) -> tuple[int, int]:
        """The ends of a topic with a single partition.

        Raises Misconfigured if it has several: the first one alone is not the whole topic.
        """
        if (number := len(list(self.partitions(topic)))) > 1:
            raise Misconfigured(
                f"{topic} has {number} partitions, must have 1: what it recorded has no order"
            )
        return self.ends(topic, 0)

    def offset_at(self, topic: str, partition: int, at_ms: int) -> int:
        """The offset of the first record that Kafka stamped then or later, or the next offset."""
        wanted = TopicPartition(topic, partition, at_ms)
        try:
            [found] = self._consumer.offsets_for_times([wanted], timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            raise failure(self._bootstrap, f"looking at {topic}", error.args[0]) from error
        return found.offset if found.offset >= 0 else self.end(topic, partition)

    def partitions(self, topic: str) -> Iterable[int]:
        """The partitions of a topic; none if there is no such topic."""
        try:
            found = self._consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
        except KafkaException as error:
            raise failure(self._bootstrap, f"looking at {topic}", error.args[0]) from error
        return list(found.partitions)

    def between(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        """Yield the records with these offsets, one read at a time; raises Missing.

        A call that begins where the last one ended continues with records already fetched.
        """
        if start >= end:
            return
        here = TopicPartition(topic, partition, start)
        if self._next != (topic, partition, start):
            self._consumer.assign([here])
        self._next = None
        position = start
        while position < end:
            message = self._polled(topic, partition, position)
            if message is None:
                # Transaction markers and compacted records have offsets but are never delivered.
                position = self._consumer.position([here])[0].offset
                if position < end:
                    raise Missing(f"{topic}/{partition} has nothing at {position}, before {end}")
                return
            position = (message.offset() or 0) + 1
            if position <= end:
                yield _record(message)
        self._next = (topic, partition, position)

    def _polled(self, topic: str, partition: int, position: int) -> Message | None:
        message = self._consumer.poll(TIMEOUT_SECONDS)
        error = None if message is None else message.error()
        if error is None:
            return message
        if error.code() in _GONE:
            raise Missing(f"{topic}/{partition} no longer has what was at {position}")
        raise failure(self._bootstrap, f"reading {topic}", error)

    def every(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        """Yield the same records, all of which must exist; raises Missing."""
        found = 0
        for record in self.between(topic, partition, start, end):
            found += 1
            yield record
        if found != end - start:
            raise Missing(
                f"{topic}/{partition} has {found} of the {end - start} records from {start}"
            )


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
