"""The network between a process and the store: it loses, delays and doubles requests and answers.

During every request others act and time passes, or the process that asks dies. So whatever the
process does between two requests, it may do after a pause of any length, or never. What it reads
in pages it reads at several moments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol, TypeVar

import numpy as np

from simulation.ownership.server import MemoryServer
from sinks.errors import SinkError, StoreUnavailable
from sinks.redis.cluster_gate import Closure
from sinks.redis.leases import Lease, Renewal
from sinks.redis.ownership_store import BatchOutcome
from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record, Transition, TransitionOutcome

T = TypeVar("T")

_PAGES: Final = (3, 20, 500)
"""Bundles per read: pages are small so that others write in between."""


@dataclass(frozen=True, slots=True)
class Odds:
    """Probabilities of faults in one request, or in one load or unload of a bundle."""

    lost: float = 0.01
    late: float = 0.005
    """The request is done some time after its sender gave up."""
    doubled: float = 0.01
    unanswered: float = 0.01
    interrupted: float = 0.1
    """Others act before it, or before its answer."""
    hung: float = 0.002
    """The same for several seconds, perhaps longer than a lease."""
    killed: float = 0.0005
    """Its sender dies before the request, and as often before the answer."""
    slow: float = 0.02
    """A load or an unload takes a while."""
    very_slow: float = 0.003
    """Longer than a lease."""
    load_s: float = 0.0
    """The least time a load takes, also when no fault is left."""


NO_FAULTS: Final = Odds(0, 0, 0, 0, 0, 0, 0, 0, 0)


class Killed(Exception):
    """Raised when the process that asks is dead."""


@dataclass(slots=True)
class Clock:
    """True time in seconds, with the events that are due."""

    now: float = 0.0
    _due: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is due any more."""
        return not self._due

    def later(self, delay: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.now + delay, next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Let time pass; due events happen at their time."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            at, _, action = heapq.heappop(self._due)
            self.now = max(self.now, at)
            with suppress(SinkError):
                action()
        self.now = max(self.now, until)


class Meanwhile(Protocol):
    """Lets others act, for that many seconds or a moment; they may be interrupted in turn."""

    def __call__(self, seconds: float | None = None) -> None: ...


def nothing_happens(seconds: float | None = None) -> None:
    """Do nothing: the world stands still meanwhile."""


@dataclass(slots=True)
class Wire:
    """One process's connection to the server that it believes is the master."""

    server: MemoryServer
    clock: Clock
    rng: np.random.Generator
    odds: Odds
    meanwhile: Meanwhile = nothing_happens
    cut: bool = False
    turned_away: Callable[[], object] = lambda: None
    """Called if the server is no master, or hears no replica: another may be the master."""

    def _through(self, ask: Callable[[], T]) -> T:
        luck = self.rng.random(8)
        odds = self.odds
        self._pause(luck[0] < odds.interrupted, luck[7] < odds.hung)
        self._survive(luck[5])
        if self.cut or luck[1] < odds.lost:
            raise StoreUnavailable("no way to the server")
        if luck[2] < odds.late:
            self.clock.later(float(self.rng.exponential(8.0)), ask)
            raise StoreUnavailable("no answer in time")
        answer = self._answered(ask)
        if luck[3] < odds.doubled:
            with suppress(SinkError):
                ask()
        self._pause(luck[0] > 1 - odds.interrupted, luck[7] > 1 - odds.hung)
        self._survive(luck[6])
        if luck[4] < odds.unanswered:
            raise StoreUnavailable("the answer was lost")
        return answer

    def _pause(self, briefly: bool, long: bool) -> None:
        if briefly:
            self.meanwhile()
        if long:
            self.meanwhile(float(self.rng.exponential(8.0)))

    def _answered(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except StoreUnavailable:
            self.turned_away()
            raise

    def _survive(self, luck: float) -> None:
        if luck < self.odds.killed:
            raise Killed

    def _pages(self, cluster: str, bundles: Iterable[str]) -> dict[str, Record]:
        """Records, read at several moments."""
        names, found = sorted(bundles), dict[str, Record]()
        size = _PAGES[self.rng.integers(len(_PAGES))] if self.odds.interrupted else len(names)
        for start in range(0, len(names), size or 1):
            page = names[start : start + size]
            found |= self._through(lambda page=page: self.server.page(cluster, page))  # type: ignore[misc]
        return found


@dataclass(slots=True)
class Link(Wire):
    """An agent's connection: its store, its leases and its commands."""

    cluster: str = ""
    broker: str = ""
    _in_hand: set[str] = field(default_factory=set)

    # Like `OwnershipStore`

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        server = self.server
        return self._through(lambda: server.apply_all(cluster, [transition], server_ms)[0])

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]:
        server = self.server
        return self._through(lambda: server.apply_all(cluster, transitions))

    def record(self, cluster: str, bundle: str) -> Record | None:
        server = self.server
        return self._through(lambda: server.record(cluster, bundle))

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        server = self.server
        owned = self._through(lambda: server.owned(cluster, broker))
        return self._pages(cluster, owned.union(besides))

    # Like `Leases`

    def renew(  # noqa: PLR0913 - as `Leases`
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = LONGEST_LEASE_MS,
    ) -> Lease:
        server = self.server
        if not server.knows_scripts:
            return self._renew_unscripted(session, ttl_ms, assertion)
        return self._through(
            lambda: server.renew(cluster, broker, session, ttl_ms, assertion, asked_for_ms)
        )

    def _renew_unscripted(self, session: int, ttl_ms: int, said: Assertion | None) -> Lease:
        """Renew as `Leases` does on a server to which no job has come yet."""
        server, cluster, broker = self.server, self.cluster, self.broker
        seen = self._through(lambda: server.look(cluster, broker))
        now, history, before = seen.now_ms, seen.history, seen.session
        told = "" if before < 0 else str(before)
        if before > session:
            return Lease(Renewal.SUPERSEDED, told, 0, now, history)
        if 0 < before < session:
            return Lease(Renewal.WAITING, told, LONGEST_LEASE_MS, now, history)
        if said is None and not seen.has_said:
            return Lease(Renewal.ASSERT, history, 0, now, history)
        lease = session, max(1, ttl_ms)
        granted = self._through(lambda: server.put_lease(cluster, broker, lease, said, seen))
        return Lease(Renewal.ASSERTED, told, granted, now, history)

    def holds(self, cluster: str, broker: str) -> bool:
        server = self.server
        return self._through(lambda: server.holds(cluster, broker))

    # Like `CommandStream`

    def read(self, block_ms: int) -> list[tuple[str, Command]]:  # noqa: ARG002 - nobody waits
        """Commands that are neither acknowledged nor held by this process."""
        # After a lost answer no process holds the commands: the real one reads again.
        if self.cut or self.rng.random() < self.odds.lost:
            raise StoreUnavailable("no way to the server")
        waiting = self._answered(lambda: self.server.waiting(self.cluster, self.broker))
        fresh = [(entry, command) for entry, command in waiting if entry not in self._in_hand]
        self._in_hand.update(entry for entry, _ in fresh)
        return fresh

    def acknowledge(self, ids: Iterable[str]) -> None:
        done, server = list(ids), self.server
        self._through(lambda: server.acknowledge(self.cluster, self.broker, done))
        self._in_hand.difference_update(done)

    def forget(self) -> None:
        """Start reading as a new process: unacknowledged commands come again."""
        self._in_hand.clear()


@dataclass(slots=True)
class JobLink(Wire):
    """The job's connection: batches, the gate and what it reads."""

    def time(self) -> float:
        server = self.server
        return self._through(server.server_time)

    def vouch(self, cluster: str, server_ms: int) -> None:
        server = self.server
        self._through(lambda: server.vouch(cluster, server_ms))

    def living(self, cluster: str) -> set[str]:
        server = self.server
        return self._through(lambda: server.living(cluster))

    def bundles(self, cluster: str) -> list[str]:
        server = self.server
        return self._through(lambda: server.bundles(cluster))

    def records(self, cluster: str, bundles: Iterable[str]) -> dict[str, Record]:
        return self._pages(cluster, bundles)

    def asserted(self, cluster: str, history: str) -> dict[str, Assertion]:
        server = self.server
        return self._through(lambda: server.asserted(cluster, history))

    def unrelayed(self, cluster: str) -> dict[str, Record]:
        server = self.server
        return self._through(lambda: server.unrelayed(cluster))

    def open(
        self, cluster: str, generation: int, known: str, rebuilt_on: str, closed_for_ms: int
    ) -> tuple[Closure | None, str]:
        """Like `ClusterGate.open`; also returns the history of the server that answered."""
        server = self.server
        return self._through(
            lambda: (
                server.open(cluster, generation, known, rebuilt_on, closed_for_ms),
                server.history,
            )
        )

    def restore(
        self, cluster: str, generation: int, records: Mapping[str, Record], untold: Set[str]
    ) -> int:
        server = self.server
        return self._through(lambda: server.restore(cluster, generation, records, untold))

    def note_owned(self, cluster: str, generation: int, bundles: Sequence[str]) -> None:
        server = self.server
        self._through(lambda: server.note_owned(cluster, generation, bundles))

    def apply_batch(  # noqa: PLR0913 - a batch, whose it is, and at what time
        self,
        cluster: str,
        transitions: Sequence[Transition],
        generation: int,
        query: str,
        batch: int,
        server_ms: int | None,
    ) -> BatchOutcome:
        server = self.server
        return self._through(
            lambda: server.apply_batch(
                cluster,
                transitions,
                generation=generation,
                query_id=query,
                batch=batch,
                server_ms=server_ms,
            )
        )
