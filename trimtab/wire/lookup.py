"""The answer to a lookup, as brokers send it to clients and to each other."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from trimtab.migration.migration import Target
from trimtab.model import NO_EPOCH, Epoch


class AnswerKind(StrEnum):
    """Pulsar's LookupType, and RETRY, where Pulsar fails: some failures make clients disconnect."""

    CONNECT = "connect"
    """``broker`` serves the bundle."""
    REDIRECT = "redirect"
    """Ask ``broker``, which decides."""
    MIGRATED = "migrated"
    """The topic is on another cluster: connect to ``target``."""
    RETRY = "retry"
    """No broker can be named now: ask again after ``after_ms``."""
    FAILED = "failed"
    """Asking again helps only after the step that ``says`` names."""


class Cause(StrEnum):
    """Why there is no broker to connect to."""

    STORE_CLOSED = "store-closed"
    """The records are being rebuilt."""
    STORE_UNAVAILABLE = "store-unavailable"
    """The broker that was asked cannot reach Redis."""
    HAND_OVER = "hand-over"
    """The bundle is being handed to a broker that does not serve it yet."""
    NO_HINTS = "no-hints"
    """The job has not yet published to which brokers bundles may go."""
    NO_CANDIDATE = "no-candidate"
    """No broker may take the bundle, or no broker that may is alive."""
    DIVIDED = "divided"
    """The bundle was split or merged during the lookup."""
    UNREACHABLE = "unreachable"
    """The broker to ask does not answer; only clients produce this cause."""

    BAD_TOPIC = "bad-topic"
    """The text that was looked up is not the name of a topic."""
    UNKNOWN_NAMESPACE = "unknown-namespace"
    """The namespace has no bundle."""
    NOT_TILING = "not-tiling"
    """The namespace's bundles leave a hole or overlap."""
    QUARANTINED = "quarantined"
    """The bundle is quarantined until an operator readmits it."""
    TOO_MANY_REDIRECTS = "too-many-redirects"
    """Brokers redirected the lookup too often; only clients produce this cause."""


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
"""The causes of RETRY; all others belong to FAILED."""


class ServiceUrls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Where a broker listens, as its load report says. None: it does not use this protocol."""

    web: str | None = None
    web_tls: str | None = None
    pulsar: str | None = None
    pulsar_tls: str | None = None

    def all(self) -> list[str]:
        """The URLs that are set."""
        return list(filter(None, (self.web, self.web_tls, self.pulsar, self.pulsar_tls)))


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a lookup. ``broker`` is the broker's id, as in the record."""

    kind: AnswerKind
    bundle: str | None = None
    """The answer holds for every topic in this bundle."""
    broker: str | None = None
    epoch: Epoch = NO_EPOCH
    """The epoch of the record that names ``broker`` (CONNECT)."""
    authoritative: bool = False
    """With CONNECT: always true, because the answer was read from the record. With REDIRECT: pass
    this flag to ``broker``; if it is set, that broker decides itself."""
    proxied: bool = False
    """Connect to the service URL and name ``broker`` there (Pulsar's proxy_through_service_url)."""
    urls: ServiceUrls | None = None
    """Where ``broker`` listens (CONNECT, REDIRECT); None if its agent has not published it."""
    target: Target | None = None
    """The other cluster's URLs (MIGRATED). Clients keep them for this topic."""
    cause: Cause | None = None
    says: str = ""
    """The cause in words. With FAILED also what to do next."""
    after_ms: int = 0
    v: int = 1


class Avoid(NamedTuple):
    """A failed earlier answer: ``broker`` did not serve the bundle that it owns since ``epoch``."""

    broker: str
    epoch: Epoch


def answer_migrated(target: Target) -> Answer:
    """Build a MIGRATED answer."""
    url = target.brokerServiceUrlTls or target.brokerServiceUrl
    return Answer(kind=AnswerKind.MIGRATED, target=target, says=f"it is on {url}")


def answer_retry(cause: Cause, says: str = "") -> Answer:
    """Build a RETRY answer."""
    return Answer(kind=AnswerKind.RETRY, cause=cause, says=says, after_ms=RETRY_AFTER_MS[cause])


def answer_failed(cause: Cause, says: str) -> Answer:
    """Build a FAILED answer."""
    return Answer(kind=AnswerKind.FAILED, cause=cause, says=says)
