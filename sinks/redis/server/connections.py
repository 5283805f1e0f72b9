"""Connections to Redis that fail fast, repeat no write by themselves, and show no password."""

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
)
from sinks.redis.server.replies import sink_error
from sinks.redis.server.sentinels import MasterPool, master_client
from sinks.tls_files import BadTlsFile

__all__ = [
    "TIMEOUT_SECONDS",
    "address",
    "look_again",
    "redis_client",
    "replace_error",
    "translate_errors",
]


def redis_client(url: str) -> redis.Redis:
    """A client whose answers are bytes; raises Misconfigured where the address cannot be one.

    redis+sentinel://s1:26379,s2:26379/name/0 follows the master of that name through failovers;
    &sentinel_username= and &sentinel_password= are for the Sentinels themselves.
    rediss:// and rediss+sentinel:// are TLS; ?ssl_ca_certs=, &ssl_certfile= and &ssl_keyfile= name
    PEM files. The server's certificate and its name are always checked.
    """
    try:
        check_options(url)
        if names_sentinels(url):
            return master_client(sentinel_address(url))
        return redis.Redis.from_url(url, **connection_options())
    except BadTlsFile as error:
        raise Misconfigured(f"the Redis address: {error}") from None
    except ValueError:
        # The text may quote the address, and with it the password.
        raise Misconfigured(f"the Redis address is not {FORMS}") from None


def address(client: redis.Redis) -> str:
    """Where a client connects to, without user or password."""
    pool = client.connection_pool
    if isinstance(pool, MasterPool):
        return str(pool.sentinels)
    where = pool.connection_kwargs
    return str(where["path"]) if "path" in where else f"{where['host']}:{where['port']}"


def look_again(client: redis.Redis) -> None:
    """Find out anew where the address leads before the next command.

    For an answer that says that this server has been replaced, or is cut off from its replicas: its
    connections do not break by themselves. Commands of other threads are not disturbed.
    """
    pool = client.connection_pool
    if isinstance(pool, MasterPool):
        pool.look_again()
    else:
        pool.disconnect(inuse_connections=False)


def replace_error(client: redis.Redis, why: str) -> StoreUnavailable:
    """The error for an answer by which this server is not the master, or cut off from its replicas.

    Where the address leads is found out anew before the next command.
    """
    look_again(client)
    return StoreUnavailable(f"Redis at {address(client)} {why}")


@contextmanager
def translate_errors(client: redis.Redis) -> Iterator[None]:
    """Raise redis-py's errors as StoreUnavailable, Misconfigured or Damaged; those of a programmer
    pass."""
    try:
        yield
    except redis.RedisError as error:
        told = sink_error(f"Redis at {address(client)}", error)
        if told is None:
            raise
        raise told from error
