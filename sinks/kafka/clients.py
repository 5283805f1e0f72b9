"""What every Kafka client here shares: its settings, and its errors told apart by what to do."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata

from sinks.errors import Fenced, KafkaUnavailable, Misconfigured, SinkError
from sinks.kafka.security import NEXT_STEP

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
        KafkaError._DESTROY_BROKER,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._QUEUE_FULL,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        # Of a topic that was made a moment ago, or a broker that was started a moment ago.
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._WAIT_COORD,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
    }
)

UNKNOWN_TOPIC: Final = frozenset(
    {
        KafkaError._DESTROY_BROKER,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a Kafka that comes and goes says of a topic that was there when this process started."""

_REFUSING: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
"""Codes of a client that was turned away."""

_ALERT: Final = re.compile(r"alert (bad certificate|certificate required|unknown ca)")
"""How a server that wants another certificate of the client's hangs up."""

_TURNED_AWAY_SECONDS: Final = 1.0
"""In which a server that answers at all has refused a wrong password, most often."""

_RECENT_SECONDS: Final = 5.0
"""librdkafka connects again, and is turned away again, at least every second."""

_log = logging.getLogger("trimtab.kafka")


class _Refusal(NamedTuple):
    at: float
    why: str


_refusals: Final[dict[str, _Refusal]] = {}
"""Address to why its Kafka turned a client of this process away last."""


class Client(Protocol):
    """Any of confluent-kafka's."""

    def poll(self, timeout: float) -> object: ...


def settings(bootstrap: str, client: Mapping[str, str], **more: object) -> dict[str, Any]:
    """librdkafka's settings; ``client``, the operator's (SASL, TLS), come before ours."""
    return {
        "bootstrap.servers": bootstrap,
        "logger": _log,
        "error_cb": partial(_note, bootstrap),
        "socket.timeout.ms": round(1000 * TIMEOUT_SECONDS),
        # A broker that comes back is noticed at once, not after librdkafka's ten seconds.
        "reconnect.backoff.max.ms": 1000,
        **more,
        **client,
    }


def check_access(bootstrap: str, client: Mapping[str, str]) -> None:
    """Raise KafkaUnavailable unless Kafka answers, and Misconfigured where it turns us away."""
    metadata(AdminClient(settings(bootstrap, client)), bootstrap)


def metadata(admin: AdminClient, bootstrap: str) -> ClusterMetadata:
    """Brokers and topics; raises KafkaUnavailable and Misconfigured."""
    # While it waits for this answer librdkafka connects again as fast as it is turned away.
    for seconds in (_TURNED_AWAY_SECONDS, TIMEOUT_SECONDS):
        try:
            return admin.list_topics(timeout=seconds)
        except KafkaException as error:
            failed = failure(bootstrap, "asking for its topics", error.args[0], admin)
            failed.__cause__ = error
            if isinstance(failed, Misconfigured):
                break
    raise failed


def failure(
    bootstrap: str, doing: str, error: KafkaError, client: Client | None = None
) -> SinkError:
    """The error to raise for one of Kafka's.

    ``client``: whose it is, unless it was polled just now. Turned away for a wrong password or
    certificate, librdkafka's calls say only that they ran out of time; why, it tells whoever polls.
    """
    text = f"Kafka at {bootstrap}, {doing}: {error.str()}"
    if error.code() in _FENCED:
        return Fenced(text)
    if error.retriable() or error.code() in _PASSING:
        if client is not None:
            client.poll(0)
        refusal = _refusals.pop(bootstrap, None)
        if refusal is not None and time.monotonic() - refusal.at < _RECENT_SECONDS:
            return Misconfigured(f"Kafka at {bootstrap}, {doing}: {refusal.why}; {NEXT_STEP}")
        return KafkaUnavailable(text)
    return Misconfigured(text)


def _note(bootstrap: str, error: KafkaError) -> None:
    """What librdkafka says of its connections, at a poll."""
    if error.code() in _REFUSING or _ALERT.search(error.str()):
        # It has logged this already.
        _refusals[bootstrap] = _Refusal(time.monotonic(), error.str())
    else:
        _log.error("%s", error.str())
