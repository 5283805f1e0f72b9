"""Settings of all Kafka clients here, and their errors sorted by what the caller should do."""

from __future__ import annotations

import logging
import math
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
"""Bytes; a batch's record of rounds lists every move and refusal of every cluster."""

_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)

# librdkafka marks only those errors as retriable that it would retry itself.
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
        # A topic that was just created, or a broker that was just started.
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
"""Codes that an unstable Kafka returns for a topic that existed when this process started."""

_REFUSING: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
"""Codes for a client that Kafka refused."""

_ALERT: Final = re.compile(r"alert (bad certificate|certificate required|unknown ca)")
"""The TLS alert of a server that wants another client certificate."""

_HUNG_UP: Final = "connecting to a PLAINTEXT broker listener"
"""librdkafka's guess where a broker ends a TLS handshake; one that restarts does so too."""

_NO_TLS: Final = (
    "it ends the TLS handshake: if this listener speaks no TLS, set kafka.security.protocol to "
    "what it speaks"
)

_TURNED_AWAY_SECONDS: Final = 1.0
"""Time in which a server that answers at all has usually refused a wrong password."""

_RECENT_SECONDS: Final = 5.0
"""Age up to which a refusal counts: librdkafka retries, and is refused, at least every second."""

_log = logging.getLogger("trimtab.kafka")


class _Refusal(NamedTuple):
    at: float
    why: str


_refusals: Final[dict[str, _Refusal]] = {}
"""Address to the last reason why its Kafka refused a client of this process."""


_hung_up: Final[dict[str, float]] = {}
"""Address to when its Kafka last ended a TLS handshake."""


class Client(Protocol):
    """Any client of confluent-kafka."""

    def poll(self, timeout: float) -> object: ...


def settings(bootstrap: str, client: Mapping[str, str], **more: object) -> dict[str, Any]:
    """librdkafka's settings; ``client``, the operator's (SASL, TLS), override ours."""
    return {
        "bootstrap.servers": bootstrap,
        "logger": _log,
        "error_cb": partial(_note, bootstrap),
        "socket.timeout.ms": round(1000 * TIMEOUT_SECONDS),
        # Notice a broker that comes back at once, not after librdkafka's ten seconds.
        "reconnect.backoff.max.ms": 1000,
        **more,
        **client,
    }


def check_access(bootstrap: str, client: Mapping[str, str]) -> None:
    """Raise KafkaUnavailable unless Kafka answers, and Misconfigured if it refuses us."""
    metadata(AdminClient(settings(bootstrap, client)), bootstrap)


def metadata(admin: AdminClient, bootstrap: str) -> ClusterMetadata:
    """Brokers and topics; raises KafkaUnavailable and Misconfigured."""
    # While it waits for this answer librdkafka reconnects as fast as it is refused.
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
    """The error of `sinks.errors` that stands for an error of the Kafka client.

    ``client``: the client that got the error; leave it out if it was just polled. After a refused
    password or certificate librdkafka's calls only report a timeout; a poll reports the cause.
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
        if time.monotonic() - _hung_up.pop(bootstrap, -math.inf) < _RECENT_SECONDS:
            text = f"{text}; {_NO_TLS}"
        return KafkaUnavailable(text)
    return Misconfigured(text)


def _note(bootstrap: str, error: KafkaError) -> None:
    """Handle a connection error that librdkafka reports at a poll."""
    if error.code() in _REFUSING or _ALERT.search(error.str()):
        # It has logged this already.
        _refusals[bootstrap] = _Refusal(time.monotonic(), error.str())
    else:
        if _HUNG_UP in error.str():
            _hung_up[bootstrap] = time.monotonic()
        _log.error("%s", error.str())
