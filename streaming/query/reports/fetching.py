"""Fetches records of trimtab.load-reports in a task, with a client that its worker keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.clients import failure, settings
from sources.records import Record
from sources.spans import Span

CHUNK: Final = 4 << 20
"""Bytes of values after which records are handed on: they go to the JVM in one message."""

_AT_ONCE: Final = 16
"""Most records of one call: with the largest reports a few times CHUNK."""

_LOOK_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 60.0
"""Time without any record until Kafka counts as away."""

_READER: Final[Mapping[str, object]] = {
    "group.id": "trimtab-reports",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    # As Spark's own connector reads the other topics.
    "isolation.level": "read_uncommitted",
    # What is fetched and not read by this task is fetched again by another.
    "queued.max.messages.kbytes": 16 << 10,
    # A full queue is half empty after a few milliseconds; the default is a second.
    "fetch.queue.backoff.ms": 2,
}

_consumers: Final[dict[str, Consumer]] = {}
"""By settings. A worker runs one task at a time, and a new client costs a connection."""


class LostReports(RuntimeError):
    """Kafka does not have the records that come next."""


def fetch(
    bootstrap: str, topic: str, spans: Sequence[Span], client: Mapping[str, str], *, lenient: bool
) -> Iterator[list[Record]]:
    """The records of the spans, some at a time; those of a partition in order.

    ``lenient``: skip what Kafka has lost. Raises LostReports, KafkaUnavailable and Misconfigured.
    """
    key = json.dumps([bootstrap, topic, dict(client), lenient])
    # Not returned after an error: what state it is in is unknown.
    consumer = _consumers.pop(key, None) or _connect(bootstrap, client, lenient=lenient)
    try:
        consumer.assign([TopicPartition(topic, span.partition, span.start) for span in spans])
        yield from _chunks(_Reading(bootstrap, topic, spans), consumer)
        consumer.unassign()
    except KafkaException as error:
        consumer.close()
        raise failure(bootstrap, f"reading {topic}", error.args[0]) from error
    except BaseException:
        consumer.close()
        raise
    _consumers[key] = consumer


def _connect(bootstrap: str, client: Mapping[str, str], *, lenient: bool) -> Consumer:
    reset = {"auto.offset.reset": "earliest" if lenient else "error"}
    try:
        return Consumer(settings(bootstrap, client, **_READER, **reset))
    except KafkaException as error:
        raise Misconfigured(f"Kafka's client: {error.args[0].str()}") from error


def _chunks(reading: _Reading, consumer: Consumer) -> Iterator[list[Record]]:
    chunk, size = list[Record](), 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while reading.left:
        messages = consumer.consume(min(_AT_ONCE, reading.left), _LOOK_SECONDS)
        for message in messages:
            record = reading.take(message)
            if record is not None:
                chunk.append(record)
                size += len(record.value or b"")
        if messages:
            deadline = time.monotonic() + PATIENCE_SECONDS
        elif time.monotonic() > deadline:
            raise reading.silence()
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _Reading:
    """What is still to be read of each partition."""

    def __init__(self, bootstrap: str, topic: str, spans: Sequence[Span]) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._next = {span.partition: span.start for span in spans}
        self._ends = {span.partition: span.end for span in spans}

    @property
    def left(self) -> int:
        """Most records that may still come."""
        return sum(self._ends[number] - at for number, at in self._next.items())

    def take(self, message: Message) -> Record | None:
        """The message's record, if it is one of those to be read."""
        number, offset = int(message.partition() or 0), int(message.offset() or 0)
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise self._trouble(error, number)
        if not self._next.get(number, offset) <= offset:
            return None
        # Transactions and compaction leave gaps, so the last offset may never come.
        after = offset if error is not None else offset + 1
        end = self._ends.get(number, 0)
        if number in self._next:
            self._next[number] = min(after, end)
        return None if error is not None or offset >= end else self._record(message)

    def _record(self, message: Message) -> Record:
        _, at = message.timestamp()
        headers: Any = message.headers() or ()  # Any: the client's stubs allow a mapping, too.
        return Record(
            topic=self._topic,
            partition=int(message.partition() or 0),
            offset=int(message.offset() or 0),
            at=at,
            key=message.key(),
            value=message.value(),
            headers=tuple(headers),
        )

    def _trouble(self, error: KafkaError, number: int) -> Exception:
        place = f"{self._topic}/{number}"
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            return LostReports(
                f"Kafka does not have {place} from {self._next.get(number)} on: {error.str()}"
            )
        return failure(self._bootstrap, f"reading {place}", error)

    def silence(self) -> KafkaUnavailable:
        """The error if no record came for long."""
        waits = ", ".join(
            f"{self._topic}/{number} from {at} to {self._ends[number]}"
            for number, at in self._next.items()
            if at < self._ends[number]
        )
        return KafkaUnavailable(
            f"Kafka at {self._bootstrap} sent nothing of {waits} in {PATIENCE_SECONDS:.0f} s"
        )
