"""The doctor's checks of Kafka and Redis: reachable if they are the user's own, else startable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy import redis_checks, redis_server
from deploy.finding import Finding, bad, good
from deploy.ports import LOOPBACK, is_free
from deploy.process import ServerError
from sinks.errors import SinkError
from sinks.kafka.topics import TOPICS, examine_topics

_SECONDS = 5


def check_kafka(
    kafka: str | int | None, client: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Finding]:
    """Check Kafka; ``client``: further options of librdkafka, for TLS and passwords."""
    if not isinstance(kafka, str):
        yield from _check_port("Kafka", kafka)
        return
    try:
        brokers = _brokers(kafka, client)
    except KafkaException as error:
        reason = error.args[0].str() if error.args else str(error)
        host, _, port = kafka.split(",")[0].rpartition(":")
        yield bad("Kafka", f"{kafka} does not answer: {reason}", f"nc -vz {host} {port}")
        return
    yield good("Kafka", f"{kafka}: {brokers} brokers")
    yield from _check_topics(kafka, client)


def _check_topics(kafka: str, client: Mapping[str, str]) -> Iterator[Finding]:
    """Check existing topics: the job creates missing ones, and does not change existing ones."""
    try:
        _, existing, findings = examine_topics(kafka, client)
    except SinkError as error:
        yield bad(
            "Kafka topics",
            str(error),
            f"trimtab kafka create-topics  # with kafka.bootstrap {kafka}",
        )
        return
    if not findings:
        missing = len(TOPICS) - len(existing)
        rest = f", {missing} missing: the job creates them" if missing else ""
        yield good("Kafka topics", f"{len(existing)} as the job needs them{rest}")
    for finding in findings:
        yield bad("Kafka topics", str(finding), finding.remedy(kafka))


def check_redis(url: str | int | None, replicas: int | None = None) -> Iterator[Finding]:
    """Check Redis; ``replicas`` is the job's setting ``redis_replicas``."""
    if isinstance(url, str):
        yield from redis_checks.check_redis(url, replicas)
        return
    yield from _check_port("Redis", url)
    yield _check_redis_binary()


def _brokers(bootstrap: str, client: Mapping[str, str]) -> int:
    # Silent: the finding reports it once, librdkafka would every second.
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "socket.timeout.ms": _SECONDS * 1000,
        **client,
    }
    return len(AdminClient(settings).list_topics(timeout=_SECONDS).brokers)


def _check_port(name: str, port: int | None) -> Iterator[Finding]:
    if port is None:
        return
    if is_free(port):
        yield good(f"{name} port", f"{LOOPBACK}:{port} is free")
    else:
        yield bad(f"{name} port", f"{LOOPBACK}:{port} is taken", f"ss -ltnp 'sport = {port}'")


def _check_redis_binary() -> Finding:
    try:
        server = redis_server.binary()
    except ServerError as error:
        return bad("Redis", str(error), "sudo apt-get install redis-server")
    found = ".".join(map(str, redis_server.version_of(server)))
    return good("Redis", f"{server.name} {found} to start; durable by our configuration")
