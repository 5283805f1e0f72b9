"""Publishes records to Kafka: all of a list acknowledged by all replicas, or an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sinks.errors import KafkaUnavailable, SinkError
from sinks.kafka.clients import LARGEST_RECORD, failure, settings

_DELIVERY_SECONDS: Final = 10.0
"""How long Kafka may be unavailable before a call fails."""
_BY_KEY: Final = -1
"""In place of a partition: the one that the key is hashed to."""


class Outgoing(NamedTuple):
    """A record to publish."""

    topic: str
    key: str
    value: bytes
    """Empty for a tombstone: compaction removes the key."""
    headers: tuple[tuple[str, bytes], ...] = ()
    everywhere: bool = False
    """To each partition of the topic, not only to the key's."""


class Publisher:
    """One idempotent producer; may be used from several threads."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._bootstrap = bootstrap
        self._settings = settings(
            bootstrap,
            client,
            **{
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "compression.type": "gzip",
                "message.max.bytes": LARGEST_RECORD,
                # Shorter than delivery, so that a missing topic does not look like an absent Kafka.
                "topic.metadata.propagation.max.ms": 3000,
                "delivery.timeout.ms": round(1000 * _DELIVERY_SECONDS),
            },
        )
        self._producer = Producer(self._settings)

    def publish(self, records: Iterable[Outgoing]) -> None:
        """Return once all are acknowledged.

        Raises KafkaUnavailable or Misconfigured if any was not: publishing all again may duplicate
        some.
        """
        delivery = _Delivery()
        # Asked once a call: a page may end many bundles.
        partitions = cache(self._partitions)
        try:
            for record in records:
                for partition in partitions(record.topic) if record.everywhere else (_BY_KEY,):
                    self._produce(record, partition, delivery)
            self._producer.flush(2 * _DELIVERY_SECONDS)
        except KafkaException as error:
            raise self._failure("its topics", error.args[0]) from error
        if delivery.failed:
            raise self._failure(*delivery.failed[0])
        if delivery.waiting:
            raise KafkaUnavailable(f"Kafka at {self._bootstrap} left {delivery.waiting} records")

    def _partitions(self, topic: str) -> Iterable[int]:
        found = self._producer.list_topics(topic, timeout=_DELIVERY_SECONDS)
        # Of a topic that does not exist, to produce tells what is wrong.
        return sorted(found.topics[topic].partitions) or (_BY_KEY,)

    def _produce(self, record: Outgoing, partition: int, delivery: _Delivery) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    key=record.key.encode(),
                    value=record.value or None,
                    headers=list(record.headers),
                    partition=partition,
                    on_delivery=delivery.done,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._failure(record.topic, error.args[0]) from error
            else:
                delivery.waiting += 1
                return

    def _failure(self, topic: str, error: KafkaError) -> SinkError:
        if error.fatal():
            # Sequence numbers are permanently out of step: only a new producer can continue.
            self._producer = Producer(self._settings)
            return KafkaUnavailable(f"Kafka at {self._bootstrap}: {error.str()}")
        return failure(self._bootstrap, f"publishing to {topic}", error)


class _Delivery:
    """The delivery results of one call's records."""

    def __init__(self) -> None:
        self.waiting = 0
        self.failed: list[tuple[str, KafkaError]] = []

    def done(self, error: KafkaError | None, message: Message) -> None:
        self.waiting -= 1
        if error is not None:
            self.failed.append((message.topic() or "", error))
