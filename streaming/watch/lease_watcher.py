"""Looks after what nobody reports: brokers whose leases run out, and a clock that jumps.

each look:
  ask Redis for its time; where the clock jumped: doubt, until a lease's time has passed without;
    else say in Redis that it is right
  for each cluster that is open to this job:
    at first: its records' owners without a lease are lost, all others have joined
    later: whoever lost or got a lease since
  publish what there is to say, in order
A look that has no answer says nothing of brokers: not to know them is not their absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, Protocol

import structlog

from sinks.errors import Damaged, SinkError
from sinks.redis.lease_scan import Owners
from streaming.ignored_records import UNREADABLE, tell_ignored
from streaming.metrics.exposition import Exposition
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.server_clock import ServerClock
from trimtab import metrics
from trimtab.doubt import Doubt

log = structlog.get_logger()

CLOCK: Final = "clock"
REDIS: Final = "redis"
"""Causes of doubt."""

_LATE: Final = 0.55
"""Of its lease: a broker renews while two thirds are left."""


class Roll(Protocol):
    """What Redis knows of brokers; raises SinkError."""

    def owners(self, cluster: str) -> Owners: ...

    def alive(
        self, cluster: str, generation: int, known: Iterable[str]
    ) -> Mapping[str, float] | None: ...

    def vouch(self, cluster: str, server_ms: int) -> None: ...


class Opened(Protocol):
    """What this job has opened, and as whom."""

    @property
    def clusters(self) -> Set[str]: ...

    @property
    def generation(self) -> int: ...


class LeaseWatcher:
    """``look`` is for one thread."""

    def __init__(
        self,
        roll: Roll,
        clock: ServerClock,
        opened: Opened,
        announcer: IntentPublisher,
        shown: Exposition,
    ) -> None:
        self._roll = roll
        self._clock = clock
        self._opened = opened
        self._announcer = announcer
        self._shown = shown
        self._known: dict[str, Set[str]] = {}
        self._longest: dict[str, dict[str, float]] = {}
        """Of each broker's lease, the most that was ever left."""
        self._unreadable: dict[str, tuple[str, ...]] = {}
        """Of each cluster, the bundles whose records were told to be ignored."""
        self._trouble = ""

    def look(self) -> None:
        trouble = ""
        for step in (self._ask, self._announcer.publish):
            try:
                step()
            except SinkError as error:
                trouble = str(error)
        if trouble != self._trouble and trouble:
            log.warning("the watcher waits", cause=trouble)
        self._trouble = trouble

    def _ask(self) -> None:
        self._clock.look()
        self._shown.set(metrics.CLOCK_DRIFT, self._clock.drift)
        level = self._clock.level()
        damaged: list[Damaged] = []
        for cluster in sorted(self._opened.clusters):
            if level is not None:
                self._announcer.doubt(cluster, CLOCK, level)
            try:
                self._see(cluster)
            except Damaged as error:
                damaged.append(error)
        if damaged:
            # The other clusters have been looked after.
            raise damaged[0]

    def _see(self, cluster: str) -> None:
        if (server_ms := self._clock.estimate_ms()) is not None:
            self._roll.vouch(cluster, server_ms)
        self._watch(cluster)

    def _watch(self, cluster: str) -> None:
        known = self._known.get(cluster)
        alive = self._roll.alive(cluster, self._opened.generation, known or ())
        if alive is None:
            # Closed: after it was rebuilt, nothing of before need be so.
            self._known.pop(cluster, None)
            return
        if known is None:
            # Once: there may be a million records.
            known = self._owners(cluster)
            alive = self._roll.alive(cluster, self._opened.generation, known)
            if alive is None:
                return
            self._announcer.doubt(cluster, REDIS, Doubt.STABLE)
            joined = set(alive)
        else:
            joined = alive.keys() - known
        late = self._late(cluster, alive)
        self._announcer.lost(cluster, sorted(known - alive.keys()), late)
        self._announcer.joined(cluster, sorted(joined))
        self._known[cluster] = set(alive)
        self._shown.set(metrics.LEASES, len(alive), cluster)

    def _owners(self, cluster: str) -> Set[str]:
        owners = self._roll.owners(cluster)
        if owners.unreadable != self._unreadable.get(cluster, ()):
            self._unreadable[cluster] = owners.unreadable
            doubted = dict.fromkeys(owners.unreadable, UNREADABLE)
            tell_ignored(self._shown, cluster, "store", "the store", doubted)
        return owners.brokers

    def _late(self, cluster: str, alive: Mapping[str, float]) -> tuple[str, ...]:
        """Brokers that have missed a renewal: where many have, it is not they that are gone."""
        longest = self._longest.get(cluster, {})
        self._longest[cluster] = longest = {
            broker: max(left, longest.get(broker, 0.0)) for broker, left in alive.items()
        }
        return tuple(sorted(b for b, left in alive.items() if left < _LATE * longest[b]))
