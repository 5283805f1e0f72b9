"""The doctor's look at Kafka and Redis: reachable if they are the user's own, else startable."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy import redis_server
from deploy.finding import Finding, bad, good
from deploy.ports import LOOPBACK, is_free
from deploy.process import ServerError

_SECONDS = 5


def check_kafka(kafka: str | int | None) -> Iterator[Finding]:
    if not isinstance(kafka, str):
        yield from _check_port("Kafka", kafka)
        return
    try:
        brokers = _brokers(kafka)
    except KafkaException as error:
        reason = error.args[0].str() if error.args else str(error)
        host, _, port = kafka.split(",")[0].rpartition(":")
        yield bad("Kafka", f"{kafka} does not answer: {reason}", f"nc -vz {host} {port}")
        return
    yield good("Kafka", f"{kafka}: {brokers} brokers")


def check_redis(url: str | int | None) -> Iterator[Finding]:
    if not isinstance(url, str):
        yield from _check_port("Redis", url)
        yield _check_redis_binary()
        return
    address = _without_password(url)
    retry = Retry(NoBackoff(), 0)
    try:
        with redis.Redis.from_url(
            url, retry=retry, socket_timeout=_SECONDS, decode_responses=True
        ) as client:
            yield _check_version(address, str(client.info("server")["redis_version"]))
            yield from _check_durability(address, client)
    except (redis.RedisError, ValueError) as error:
        yield bad("Redis", f"{address} does not answer: {error}", f"redis-cli -u {address} ping")


def _brokers(bootstrap: str) -> int:
    # Silent: the finding says it once, librdkafka would say it every second.
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "socket.timeout.ms": _SECONDS * 1000,
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


def _check_version(address: str, found: str) -> Finding:
    if tuple(map(int, found.split(".")[:2])) < redis_server.OLDEST:
        return bad("Redis", f"{address} is {found}, needs 7.0", "sudo apt-get install redis-server")
    return good("Redis", f"{address} is {found}")


def _check_durability(address: str, client: redis.Redis) -> Iterator[Finding]:
    """What was acknowledged may not be gone after a restart, nor for want of room."""
    wanted = {
        "appendonly": ("yes",),
        # everysec may lose its last second, which the journal in Kafka rebuilds.
        "appendfsync": ("always", "everysec"),
        "maxmemory-policy": ("noeviction",),
    }
    for setting, accepted in wanted.items():
        name = f"Redis {setting}"
        try:
            found = client.config_get(setting).get(setting)
        except redis.ResponseError as error:
            # Hosted services forbid CONFIG; there it is set in their console.
            yield bad(name, f"cannot be read: {error}", f"set {setting} to {accepted[0]} there")
            continue
        if found in accepted:
            yield good(name, str(found))
        else:
            command = f"redis-cli -u {address} CONFIG SET {setting} {accepted[0]}"
            yield bad(name, f"{found}, needs {' or '.join(accepted)}", command)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
