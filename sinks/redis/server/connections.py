"""Connections to Redis that fail fast, never retry a write themselves, and show no password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from sinks.errors import Misconfigured, StoreUnavailable
from sinks.redis.server.address import (
    FORMS,
    TIMEOUT_SECONDS,
    check_options,
    connection_options,
    names_sentinels,
    sentinel_address,
    split_password_file,
)
from sinks.redis.server.replies import NO_ANSWER_TO_TLS, sink_error
from sinks.redis.server.sentinels import MasterPool, master_client
from sinks.tls_files import BadTlsFile

__all__ = [
    "TIMEOUT_SECONDS",
    "address",
    "look_again",
    "redis_client",
    "translate_errors",
]


def redis_client(url: str) -> redis.Redis:
    """A client whose answers are bytes; raises Misconfigured if the address is invalid.

    redis+sentinel://s1:26379,s2:26379/name/0 follows the master of that name through failovers;
    &sentinel_username= and &sentinel_password= are for the Sentinels themselves.
    rediss:// and rediss+sentinel:// are TLS; ?ssl_ca_certs=, &ssl_certfile= and &ssl_keyfile= name
    PEM files. The server's certificate and its name are always checked. ?password_file= names a
    file with the password, which is read for each connection.
    """
    try:
        check_options(url)
        if names_sentinels(url):
            return master_client(sentinel_address(url))
        plain, provider = split_password_file(url)
        return redis.Redis.from_url(plain, **connection_options(), **provider)
    except BadTlsFile as error:
        raise Misconfigured(f"the Redis address: {error}") from None
    except ValueError:
        # The text may quote the address, and with it the password.
        raise Misconfigured(f"the Redis address is not {FORMS}") from None


def address(client: redis.Redis) -> str:
    """A client's address, without user or password."""
    pool = client.connection_pool
    if isinstance(pool, MasterPool):
        return str(pool.sentinels)
    where = pool.connection_kwargs
    return str(where["path"]) if "path" in where else f"{where['host']}:{where['port']}"


def look_again(client: redis.Redis) -> None:
    """Resolve the address again before the next command.

    For an answer which shows that this server was replaced, or is cut off from its replicas: its
    connections do not break by themselves. Commands of other threads are not disturbed.
    """
    pool = client.connection_pool
    if isinstance(pool, MasterPool):
        pool.look_again()
    else:
        pool.disconnect(inuse_connections=False)


def _waits_for_tls(client: redis.Redis, error: redis.RedisError) -> bool:
    """Whether no answer came to a TLS handshake: a plain server waits for the end of a line."""
    kind = getattr(client.connection_pool, "connection_class", None)
    tls = isinstance(kind, type) and issubclass(kind, redis.SSLConnection)
    return tls and isinstance(error, redis.TimeoutError) and "connecting" in str(error)


@contextmanager
def translate_errors(client: redis.Redis) -> Iterator[None]:
    """Raise redis-py's errors as StoreUnavailable, Misconfigured or Damaged; programming errors
    pass unchanged."""
    try:
        yield
    except redis.RedisError as error:
        translated = sink_error(f"Redis at {address(client)}", error)
        if translated is None:
            raise
        if _waits_for_tls(client, error):
            raise StoreUnavailable(f"{translated}; {NO_ANSWER_TO_TLS}") from error
        raise translated from error
