"""The Kafka producer that sends load reports; it gives up a report long before Kafka would."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from sinks.kafka.clients import check_access
from sinks.kafka.security import PLAINTEXT, KafkaSecurity


class Delivery(Protocol):
    """kafka-python's future of a sent record."""

    def add_callback(self, f: Callable[[object], None]) -> object: ...

    def add_errback(self, f: Callable[[object], None]) -> object: ...


class Producer(Protocol):
    """The used part of KafkaProducer."""

    def send(
        self, topic: str, value: bytes, key: bytes, headers: list[tuple[str, bytes]]
    ) -> Delivery: ...

    def close(self, timeout: float) -> None: ...


def kafka_producer(bootstrap: str, security: KafkaSecurity = PLAINTEXT) -> Producer:
    """A producer for reports; raises KafkaError or KafkaUnavailable while no broker of
    ``bootstrap`` answers, and Misconfigured if it refuses us."""
    if security != PLAINTEXT:
        # kafka-python cannot tell a wrong password or certificate from an absent server, retries
        # for ever, and leaves its sockets to the garbage collector.
        check_access(bootstrap, security.librdkafka())
        # At DEBUG it logs what it sends, including the password with SASL PLAIN.
        for name in ("kafka.net", "kafka.protocol"):
            logging.getLogger(name).setLevel(logging.INFO)
    # A report is stale long before Kafka's two minutes; the small linger lets a process with many
    # brokers fill its requests; an auto-created topic would lack LogAppendTime.
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        **security.kafka_python(),
        acks="all",
        allow_auto_create_topics=False,
        metrics_enabled=False,
        linger_ms=5,
        batch_size=256 * 1024,
        max_block_ms=2_000,
        bootstrap_timeout_ms=2_000,
        request_timeout_ms=5_000,
        delivery_timeout_ms=15_000,
        reconnect_backoff_max_ms=5_000,
    )
    return _Closing(producer)


@dataclass(frozen=True, slots=True)
class _Closing:
    """A KafkaProducer that ends its thread and sockets even with undelivered reports."""

    # Any: kafka-python has no annotations.
    producer: Any

    def send(
        self, topic: str, value: bytes, key: bytes, headers: list[tuple[str, bytes]]
    ) -> Delivery:
        delivery: Delivery = self.producer.send(topic, value=value, key=key, headers=headers)
        return delivery

    def close(self, timeout: float) -> None:
        try:
            self.producer.close(timeout)
        except KafkaTimeoutError:
            # Its flush gave up, which skips the rest of its close.
            self.producer._sender.force_close()
            self.producer._sender.join(timeout)
