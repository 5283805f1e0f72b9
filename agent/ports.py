"""The agent's interfaces to the store, its lease, its commands and Kafka, real or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from sinks.redis.hints import Counted
from sinks.redis.leasing.lease import Lease
from trimtab.migration.migration import Migration
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.hints import Hints
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.ownership import Record, Transition, TransitionOutcome
from trimtab.wire.reports.load_report import LocalBrokerData
from trimtab.wire.topics import TopicCall, TopicOutcome, TopicRecord


class Store(Protocol):
    """`sinks.redis.ownership_store.OwnershipStore`, as a broker uses it."""

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome: ...

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]: ...

    def record(self, cluster: str, bundle: str) -> Record | None: ...

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]: ...


class LeaseKeeper(Protocol):
    """`sinks.redis.leasing.leases.Leases`, as a broker uses it."""

    def renew(  # noqa: PLR0913 - as `Leases`
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = ...,
    ) -> Lease: ...


class Commands(Protocol):
    """`sinks.redis.command_streams.CommandStream`."""

    def read(self, block_ms: int) -> list[tuple[str, Command]]: ...

    def acknowledge(self, ids: Iterable[str]) -> None: ...


class Reports(Protocol):
    """`agent.reports.reporting.Reporter`."""

    def offer(self, data: LocalBrokerData, now: float) -> None: ...


class HintReader(Protocol):
    """`sinks.redis.hints.PlacementHints`."""

    def read(self, cluster: str) -> Hints | None: ...

    def placed(self, cluster: str) -> int: ...

    def group_of(self, cluster: str, namespace: str) -> tuple[str, tuple[str, ...]] | None: ...

    def count(self, cluster: str, namespaces: Sequence[str], tallies: Sequence[str]) -> Counted: ...


class Topics(Protocol):
    """`sinks.redis.topics.TopicStore`."""

    def migrations(self, cluster: str) -> Mapping[str, Migration]: ...

    def topics_in(self, cluster: str, bundle: str) -> Iterator[dict[str, TopicRecord]]: ...

    def change(self, cluster: str, call: TopicCall) -> tuple[TopicOutcome, ...]: ...


class UrlBook(Protocol):
    """`sinks.redis.service_urls.UrlStore`."""

    def write(self, cluster: str, broker: str, urls: ServiceUrls) -> None: ...

    def read(self, cluster: str, broker: str) -> ServiceUrls | None: ...
