"""Detects what no broker reports: leases that expire, and a clock that jumps.

each look:
  ask Redis for its time; if the clock jumped: doubt, until a lease's time passes without a jump;
    otherwise confirm in Redis that its clock is right
  for each cluster that is open to this job, unless nothing has changed there:
    at first: record owners without a lease are lost, all brokers with one have joined
    later: the brokers that lost or got a lease since, and those that were refused a bundle for lack
      of a lease and still have none: they report without ever having had one
  publish the intents, in order
A look without an answer announces nothing: an unknown broker is not an absent one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, Protocol

import structlog

from sinks.errors import Damaged, SinkError
from sinks.exposition import Exposition
from sinks.redis.leasing.lease_scan import Owners
from streaming.metrics.ignored_records import UNREADABLE, tell_ignored
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.server_clock import ServerClock
from trimtab.doubt import Doubt
from trimtab.metrics import job as metrics

log = structlog.get_logger()

CLOCK: Final = "clock"
REDIS: Final = "redis"
"""Causes of doubt."""

_LATE: Final = 0.55
"""Share of its lease left below which a broker is late: it renews while two thirds are left."""
_TIMES: Final = 20
"""A cluster in which nothing has changed is read once in so many looks, to learn how long its
brokers' leases last: what is left of ten thousand leases costs 70 ms. More seldom: it takes longer
until a broker that is late is known as such."""


class Scan(Protocol):
    """Reads the brokers' leases from Redis; raises SinkError."""

    def owners(self, cluster: str) -> Owners: ...

    def changed(self, known: Mapping[str, Set[str]], generation: int) -> set[str]: ...

    def alive(
        self, cluster: str, generation: int, known: Iterable[str]
    ) -> Mapping[str, float] | None: ...

    def vouch(self, clusters: Iterable[str], server_ms: int) -> None: ...


class Opened(Protocol):
    """The clusters that this job has opened, and its generation."""

    @property
    def clusters(self) -> Set[str]: ...

    @property
    def generation(self) -> int: ...


class LeaseWatcher:
    """Watches the leases; one thread calls ``look``."""

    def __init__(
        self,
        scan: Scan,
        clock: ServerClock,
        opened: Opened,
        intent_publisher: IntentPublisher,
        shown: Exposition,
    ) -> None:
        self._scan = scan
        self._clock = clock
        self._opened = opened
        self._intent_publisher = intent_publisher
        self._shown = shown
        self._known: dict[str, Set[str]] = {}
        self._longest: dict[str, dict[str, float]] = {}
        """Cluster to broker to the most that was ever left of its lease."""
        self._unreadable: dict[str, tuple[str, ...]] = {}
        """Cluster to the bundles whose records were reported as ignored."""
        self._trouble = ""
        self._looks = 0
        self._lock = threading.Lock()
        self._refused: dict[str, Set[str]] = {}
        """Cluster to the brokers that a script has just found without a lease."""

    def suspect(self, cluster: str, brokers: Iterable[str]) -> None:
        """Ask for the leases of brokers that a script gave nothing, as they hold none; from any
        thread. A broker that never had a lease would otherwise be planned for in each round."""
        with self._lock:
            self._refused[cluster] = self._refused.get(cluster, frozenset()) | {*brokers}

    def look(self) -> None:
        trouble = ""
        for step in (self._ask, self._intent_publisher.publish):
            try:
                step()
            except SinkError as error:
                trouble = str(error)
        if trouble != self._trouble and trouble:
            log.warning("leases cannot be watched now", cause=trouble)
        self._trouble = trouble

    def _ask(self) -> None:
        self._clock.look()
        self._shown.set(metrics.CLOCK_DRIFT, self._clock.drift)
        level = self._clock.level()
        damaged: list[Damaged] = []
        clusters = sorted(self._opened.clusters)
        if level is not None:
            for cluster in clusters:
                self._intent_publisher.doubt(cluster, CLOCK, level)
        if clusters and (server_ms := self._clock.estimate_ms()) is not None:
            self._scan.vouch(clusters, server_ms)
        for cluster in self._find_due(clusters):
            try:
                self._watch(cluster)
            except Damaged as error:
                damaged.append(error)
        if damaged:
            # The other clusters have been checked.
            raise damaged[0]

    def _find_due(self, clusters: Sequence[str]) -> list[str]:
        """The clusters to read: those in which something has changed, and others in turn."""
        self._looks += 1
        with self._lock:
            refused = {cluster for cluster, brokers in self._refused.items() if brokers}
        known = {
            cluster: self._known[cluster]
            for turn, cluster in enumerate(clusters)
            if cluster in self._known
            and cluster not in refused
            and (self._looks + turn) % _TIMES != 0
        }
        due = self._scan.changed(known, self._opened.generation) if known else set()
        return [cluster for cluster in clusters if cluster in due or cluster not in known]

    def _watch(self, cluster: str) -> None:
        known = self._known.get(cluster)
        with self._lock:
            refused = self._refused.get(cluster, frozenset())
        asked = refused | (known or frozenset())
        alive = self._scan.alive(cluster, self._opened.generation, asked)
        if alive is None:
            # Closed: after a rebuild, earlier knowledge may be wrong.
            self._known.pop(cluster, None)
            return
        if known is None:
            # Once: there may be a million records.
            known = self._owners(cluster)
            alive = self._scan.alive(cluster, self._opened.generation, known | refused)
            if alive is None:
                return
            self._intent_publisher.doubt(cluster, REDIS, Doubt.STABLE)
            joined = set(alive)
        else:
            joined = alive.keys() - known
        late = self._late(cluster, alive)
        self._intent_publisher.lost(cluster, sorted((known | refused) - alive.keys()), late)
        self._intent_publisher.joined(cluster, sorted(joined))
        self._known[cluster] = set(alive)
        with self._lock:
            self._refused[cluster] = self._refused.get(cluster, frozenset()) - refused
        self._shown.set(metrics.LEASES, len(alive), cluster)

    def _owners(self, cluster: str) -> Set[str]:
        owners = self._scan.owners(cluster)
        if owners.unreadable != self._unreadable.get(cluster, ()):
            self._unreadable[cluster] = owners.unreadable
            doubted = dict.fromkeys(owners.unreadable, UNREADABLE)
            tell_ignored(self._shown, cluster, "store", "the store", doubted)
        return owners.brokers

    def _late(self, cluster: str, alive: Mapping[str, float]) -> tuple[str, ...]:
        """Brokers that missed a renewal: if many did, the brokers are not the cause."""
        longest = self._longest.get(cluster, {})
        self._longest[cluster] = longest = {
            broker: max(left, longest.get(broker, 0.0)) for broker, left in alive.items()
        }
        return tuple(sorted(b for b, left in alive.items() if left < _LATE * longest[b]))
