"""What every Kafka client here shares: its settings, and its errors told apart by what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError

from sinks.errors import Fenced, KafkaUnavailable, Misconfigured, SinkError

TIMEOUT_SECONDS: Final = 5.0
"""Longest wait for one answer of Kafka."""

LARGEST_RECORD: Final = 8 << 20
"""Bytes: a batch's record of rounds lists every move and refusal of every cluster."""

_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)

# librdkafka marks as retriable only what it would retry itself.
_PASSING: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._DESTROY,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._QUEUE_FULL,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)


def settings(bootstrap: str, client: Mapping[str, str], **more: object) -> dict[str, Any]:
    """librdkafka's settings; ``client``, the operator's (SASL, TLS), come before ours."""
    return {
        "bootstrap.servers": bootstrap,
        "logger": logging.getLogger("trimtab.kafka"),
        "socket.timeout.ms": round(1000 * TIMEOUT_SECONDS),
        # A broker that comes back is noticed at once, not after librdkafka's ten seconds.
        "reconnect.backoff.max.ms": 1000,
        **more,
        **client,
    }


def failure(bootstrap: str, doing: str, error: KafkaError) -> SinkError:
    """The error to raise for one of Kafka's."""
    text = f"Kafka at {bootstrap}, {doing}: {error.str()}"
    if error.code() in _FENCED:
        return Fenced(text)
    if error.retriable() or error.code() in _PASSING:
        return KafkaUnavailable(text)
    return Misconfigured(text)
