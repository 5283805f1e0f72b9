"""Connections to Redis that fail fast, repeat no write by themselves, and show no password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.retry import Retry

from sinks.errors import Misconfigured, StoreUnavailable

TIMEOUT_SECONDS: Final = 1.0
"""Longest wait for one answer: longer, and a hung server would cost a broker its lease."""

_PASSING: Final = ("NOREPLICAS ", "MISCONF ", "BUSY ", "MASTERDOWN ", "UNBLOCKED ")
"""Codes of replies that redis-py has no class for and that end without our doing."""


def redis_client(url: str) -> redis.Redis:
    """A client whose answers are bytes; raises Misconfigured where the address cannot be one.

    redis-py 8 repeats a timed-out command up to ten times: an INCR was seen applied twice.
    """
    try:
        return redis.Redis.from_url(
            url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
            # RESP3 gives maps where RESP2 gives lists: one shape for every server.
            protocol=2,
        )
    except ValueError:
        # redis-py's text may quote the address, and with it the password.
        raise Misconfigured("the Redis address is not redis://host:port/db") from None


def address(client: redis.Redis) -> str:
    """Where a client connects to, without user or password."""
    where = client.connection_pool.connection_kwargs
    return str(where["path"]) if "path" in where else f"{where['host']}:{where['port']}"


@contextmanager
def translated(client: redis.Redis) -> Iterator[None]:
    """Raise redis-py's errors as StoreUnavailable or Misconfigured; those of a programmer pass."""
    try:
        yield
    except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
        raise Misconfigured(f"Redis at {address(client)} refuses us: {error}") from error
    except (
        redis.ConnectionError,
        redis.TimeoutError,
        ReadOnlyError,
        OutOfMemoryError,
        ClusterError,
    ) as error:
        raise StoreUnavailable(f"Redis at {address(client)}: {error}") from error
    except ResponseError as error:
        if not str(error).startswith(_PASSING):
            raise
        raise StoreUnavailable(f"Redis at {address(client)}: {error}") from error
