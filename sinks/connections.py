"""Connections to Redis that fail fast, repeat no write by themselves, and show no password."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

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
from sinks.tls_files import BadTlsFile, check_ca, check_pair

TIMEOUT_SECONDS: Final = 1.0
"""Longest wait for one answer: longer, and a hung server would cost a broker its lease."""

_PASSING: Final = ("NOREPLICAS ", "MISCONF ", "BUSY ", "MASTERDOWN ", "UNBLOCKED ")
"""Codes of replies that redis-py has no class for and that end without our doing."""

_DENIED_IN_SCRIPT: Final = ("The user executing the script can't ", "ACL failure in script: ")
"""How Redis 7.0, and later servers, say that a script lacks a right of its caller's."""


_NEXT_STEPS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "ssl_ca_certs must hold the authority that signed the server's "
    "certificate, and the address must be one that the certificate names",
    "WRONG_VERSION_NUMBER": "this port speaks no TLS: say redis://, or name the one that does",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server asks for ssl_certfile and ssl_keyfile",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server asks for ssl_certfile and ssl_keyfile",
    "TLSV1_ALERT_UNKNOWN_CA": "the server does not trust the authority that signed ssl_certfile",
}
"""OpenSSL's reasons that no repetition mends, and what to do."""

_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def redis_client(url: str) -> redis.Redis:
    """A client whose answers are bytes; raises Misconfigured where the address cannot be one.

    rediss:// is TLS; ?ssl_ca_certs=, &ssl_certfile= and &ssl_keyfile= name PEM files. The server's
    certificate and its name are always checked.
    redis-py 8 repeats a timed-out command up to ten times: an INCR was seen applied twice.
    """
    try:
        _check_options(url)
        return redis.Redis.from_url(
            url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
            # RESP3 gives maps where RESP2 gives lists: one shape for every server.
            protocol=2,
            # Telling the server who we are takes a right that nobody needs otherwise.
            driver_info=None,
        )
    except BadTlsFile as error:
        raise Misconfigured(f"the Redis address: {error}") from None
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
        raise Misconfigured(_refused(client, error)) from error
    except (
        redis.ConnectionError,
        redis.TimeoutError,
        ReadOnlyError,
        OutOfMemoryError,
        ClusterError,
    ) as error:
        if next_step := _NEXT_STEPS.get(_tls_reason(error)):
            raise Misconfigured(f"Redis at {address(client)}: {error}; {next_step}") from error
        raise StoreUnavailable(f"Redis at {address(client)}: {error}") from error
    except ResponseError as error:
        if str(error).startswith(_DENIED_IN_SCRIPT):
            raise Misconfigured(_refused(client, error)) from error
        if not str(error).startswith(_PASSING):
            raise
        raise StoreUnavailable(f"Redis at {address(client)}: {error}") from error


def _refused(client: redis.Redis, error: Exception) -> str:
    return (
        f"Redis at {address(client)} refuses us: {error}; "
        "check the user and password of the address, and what its ACL lets the user do"
    )


def _check_options(url: str) -> None:
    """Raise BadTlsFile, and Misconfigured for any other option: it could switch off what we need,
    the timeouts or the checking of certificates."""
    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    allowed = {"rediss": _FILES, "unix": ("db", "password")}.get(parts.scheme, ())
    if unknown := sorted(set(options).difference(allowed)):
        raise Misconfigured(
            f"the Redis address may not say {', '.join(unknown)}; "
            f"a {parts.scheme}:// address may say {', '.join(allowed) or 'nothing after its db'}"
        )
    if ca := options.get("ssl_ca_certs"):
        check_ca("ssl_ca_certs", Path(ca))
    if certificate := options.get("ssl_certfile"):
        check_pair("ssl_certfile", Path(certificate), Path(options.get("ssl_keyfile", certificate)))


def _tls_reason(error: Exception) -> str:
    """OpenSSL's word for why TLS failed, "" if it did not; redis-py hides the error in its own."""
    cause = error.__context__
    return (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
