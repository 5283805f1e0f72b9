"""The answer to a lookup, as brokers give it to clients and to one another."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from trimtab.model import NO_EPOCH, Epoch


class AnswerKind(StrEnum):
    """Pulsar's LookupType, and RETRY: there it is a failure, at some of which clients hang up."""

    CONNECT = "connect"
    """``broker`` serves the bundle."""
    REDIRECT = "redirect"
    """Ask ``broker``, which decides."""
    RETRY = "retry"
    """Nobody can be named now: ask again after ``after_ms``."""
    FAILED = "failed"
    """Asking again helps only after somebody has done what ``says`` tells."""


class Cause(StrEnum):
    """Why there is no broker to connect to."""

    STORE_CLOSED = "store-closed"
    STORE_UNAVAILABLE = "store-unavailable"
    HAND_OVER = "hand-over"
    """The bundle is being given to a broker that does not serve it yet."""
    NO_HINTS = "no-hints"
    """The job has not said where bundles may go."""
    NO_CANDIDATE = "no-candidate"
    """No broker may take it, or none that may is alive."""
    DIVIDED = "divided"
    """The bundle was divided or merged while it was looked up."""
    UNREACHABLE = "unreachable"
    """A broker that was to be asked does not answer; clients say this to themselves."""

    BAD_TOPIC = "bad-topic"
    UNKNOWN_NAMESPACE = "unknown-namespace"
    NOT_TILING = "not-tiling"
    """The namespace's bundles leave a hole or overlap."""
    QUARANTINED = "quarantined"
    TOO_MANY_REDIRECTS = "too-many-redirects"


RETRY_AFTER_MS: Final[Mapping[Cause, int]] = MappingProxyType(
    {
        Cause.STORE_CLOSED: 1_000,
        Cause.STORE_UNAVAILABLE: 500,
        Cause.HAND_OVER: 100,
        Cause.NO_HINTS: 1_000,
        Cause.NO_CANDIDATE: 1_000,
        Cause.DIVIDED: 10,
        Cause.UNREACHABLE: 100,
    }
)
"""The causes of RETRY; all others are of FAILED."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``broker`` is its id, as in the record; its addresses are in its load report."""

    kind: AnswerKind
    bundle: str | None = None
    """Whose answer this is: it holds for every topic in it."""
    broker: str | None = None
    epoch: Epoch = NO_EPOCH
    """Of the record that names ``broker`` (CONNECT)."""
    authoritative: bool = False
    """CONNECT: read from the record, always so. REDIRECT: say so to ``broker``, and it decides
    itself."""
    proxied: bool = False
    """Connect to the service URL and name ``broker`` there (Pulsar's proxy_through_service_url)."""
    cause: Cause | None = None
    says: str = ""
    """The cause in words and, of FAILED, the next step."""
    after_ms: int = 0
    v: int = 1


class Avoid(NamedTuple):
    """An answer that was of no use: ``broker`` did not serve the bundle it owns since ``epoch``."""

    broker: str
    epoch: Epoch


def answer_retry(cause: Cause, says: str = "") -> Answer:
    """RETRY."""
    return Answer(kind=AnswerKind.RETRY, cause=cause, says=says, after_ms=RETRY_AFTER_MS[cause])


def answer_failed(cause: Cause, says: str) -> Answer:
    """FAILED."""
    return Answer(kind=AnswerKind.FAILED, cause=cause, says=says)
