"""Sorts redis-py's errors: those to retry, and those that an operator must fix."""

from __future__ import annotations

import re
import ssl
from typing import Final

import redis
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterCrossSlotError,
    ClusterDownError,
    InvalidResponse,
    MasterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from sinks.errors import Damaged, Misconfigured, SinkError, StoreUnavailable

NO_CLUSTER: Final = (
    "Redis Cluster is not supported; use a single master, with replicas and Sentinel if wanted"
)

RIGHTS: Final = (
    "check the user and password of the address, and what its ACL lets the user do: after an "
    "upgrade, make its line again (python -m deploy.redis_acl)"
)

_AWAY: Final = (
    redis.ConnectionError,
    InvalidResponse,
    redis.TimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    MasterDownError,
)
_DENIED: Final = (AuthenticationError, AuthorizationError, NoPermissionError)
# AskError is MovedError's base. MasterDownError is a ClusterDownError, and comes from a replica.
_OF_CLUSTERS: Final = (AskError, ClusterDownError, ClusterCrossSlotError, TryAgainError)

_MISTAKES: Final = (
    "wrong number of arguments ",
    "syntax error",
    "value is not ",
    "invalid expire time ",
    "Invalid stream ID ",
)
"""Beginnings of replies to commands that no server takes."""

_REFUSED: Final = {
    # Redis 7.0's text, and later servers', for a script whose caller lacks a right.
    "The user executing the script can't ": RIGHTS,
    "ACL failure in script: ": RIGHTS,
    "DENIED ": "give the server a password, or bind it to the interface that clients use",
    "DB index is out of range": "name a database that the server has; /0 is always there",
    "SELECT is not allowed in cluster mode": NO_CLUSTER,
    "Script attempted to access ": NO_CLUSTER,
    "unknown command": "the server must be Redis 7.0 or later, and rename no command",
    "Unknown command called from script": "the server must rename no command",
    "Unknown Redis command called from script": "the server must rename no command",
}
"""Beginnings of replies that redis-py has no class for and no retry fixes; and what to do."""

NO_ANSWER_TO_TLS: Final = (
    "nothing answers TLS there: if this port speaks none, say redis://, or name the one that does"
)

_TLS_STEPS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "ssl_ca_certs must hold the authority that signed the server's "
    "certificate, and the address must be one that the certificate names",
    "WRONG_VERSION_NUMBER": "this port speaks no TLS: say redis://, or name the one that does",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server asks for ssl_certfile and ssl_keyfile",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server asks for ssl_certfile and ssl_keyfile",
    "TLSV1_ALERT_UNKNOWN_CA": "the server does not trust the authority that signed ssl_certfile",
}
"""OpenSSL's reasons that no retry fixes, and what to do."""

REPAIR: Final = (
    "a key of this cluster is not as trimtab writes it; `trimtab doctor --redis URL` names it. "
    "See who else may write to trimtab:{cluster}:*, close the cluster, so that its records are "
    "rebuilt, and delete that key in the same step: MULTI, HDEL trimtab:{cluster}:open replid, "
    "DEL key, EXEC"
)

_OF_SCRIPTS: Final = "user_script:"
"""Text in each reply to a failed script, before the line number."""

_PIPELINED: Final = re.compile(r"^Command # \d+ \(.*?\) of pipeline caused error: ", re.DOTALL)
"""redis-py's prefix to a reply to one of several commands."""


def sink_error(where: str, error: redis.RedisError, rights: str = RIGHTS) -> SinkError | None:
    """The error to raise instead; None for a programming error. ``where``: "Redis at host:port".

    ``rights`` says what to do about a refusal.
    """
    if isinstance(error, _DENIED):
        return Misconfigured(f"{where} refuses us: {_said(error)}; {rights}")
    if isinstance(error, _AWAY):
        if next_step := _TLS_STEPS.get(_tls_reason(error)):
            return Misconfigured(f"{where}: {_said(error)}; {next_step}")
        return StoreUnavailable(f"{where}: {_said(error)}")
    if isinstance(error, _OF_CLUSTERS):
        return Misconfigured(f"{where}: {error}; {NO_CLUSTER}")
    return _by_text(where, error) if isinstance(error, ResponseError) else None


def _by_text(where: str, error: ResponseError) -> SinkError | None:
    text = reply(error)
    for beginning, next_step in _REFUSED.items():
        if text.startswith(beginning):
            return Misconfigured(f"{where} refuses us: {text}; {next_step}")
    # A command on a key that somebody else wrote. Scripts are tested on what they write.
    if text.startswith("WRONGTYPE") or _OF_SCRIPTS in text:
        return Damaged(f"{where}: {text}; {REPAIR}")
    if isinstance(error, NoScriptError) or text.startswith(_MISTAKES):
        return None
    # A server, or a proxy before it, may say anything: it passes, or an operator reads of it.
    return StoreUnavailable(f"{where}: {text}")


def _said(error: redis.RedisError) -> str:
    """The error's text as part of a sentence."""
    return str(error).removesuffix(".")


def reply(error: ResponseError) -> str:
    """The server's text, without the prefix that redis-py adds in a pipeline."""
    return _PIPELINED.sub("", str(error))


def _tls_reason(error: Exception) -> str:
    """OpenSSL's reason why TLS failed, "" if it did not; redis-py wraps the error in its own."""
    cause = error.__context__
    return (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
