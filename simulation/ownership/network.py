"""What lies between an agent and the server: requests get lost, late, doubled or answered in vain.

In the middle of every request others act and time passes, or the agent's process dies. So whatever
an agent does between two requests, it may do after a pause of any length, or never.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol, TypeVar

import numpy as np

from simulation.ownership.server import MemoryCommands, MemoryServer
from sinks.errors import SinkError, StoreUnavailable
from sinks.leases import Lease
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Outcome, Record, Transition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Odds:
    """Of what may happen to one request."""

    lost: float = 0.01
    late: float = 0.005
    """It is done some time after its sender gave up."""
    doubled: float = 0.01
    unanswered: float = 0.01
    interrupted: float = 0.1
    """Others act before it, or before its answer."""
    killed: float = 0.0005
    """Its sender dies before it, and as often before its answer."""


NO_FAULTS: Final = Odds(0, 0, 0, 0, 0, 0)


class Killed(Exception):
    """The process that asks is no more."""


@dataclass(slots=True)
class Clock:
    """True time, seconds, and what is to happen at some of it."""

    now: float = 0.0
    _due: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def later(self, delay: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.now + delay, next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due happens at its time."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            at, _, action = heapq.heappop(self._due)
            self.now = max(self.now, at)
            with suppress(SinkError):
                action()
        self.now = max(self.now, until)


class Meanwhile(Protocol):
    """Lets others act; they may in turn be interrupted."""

    def __call__(self) -> None: ...


@dataclass(slots=True)
class Link:
    """One agent's way to the server: its store, its leases and its commands."""

    server: MemoryServer
    commands: MemoryCommands
    clock: Clock
    rng: np.random.Generator
    odds: Odds
    meanwhile: Meanwhile
    cut: bool = False

    def mend(self) -> None:
        self.cut = False

    def apply(self, cluster: str, transition: Transition) -> Outcome:
        return self._through(lambda: self.server.apply(cluster, transition))

    def record(self, cluster: str, bundle: str) -> Record | None:
        return self._through(lambda: self.server.record(cluster, bundle))

    def records(self, cluster: str) -> dict[str, Record]:
        return self._through(lambda: self.server.records(cluster))

    def renew(self, cluster: str, broker: str, session: int, ttl_ms: int) -> Lease:
        return self._through(lambda: self.server.renew(cluster, broker, session, ttl_ms))

    def say(self, cluster: str, broker: str, server_run: str, assertion: Assertion) -> None:
        self._through(lambda: self.server.say(cluster, broker, server_run, assertion))

    def read(self, block_ms: int) -> list[tuple[str, Command]]:
        # An answer that is lost leaves the commands in hand of nobody: the real one reads again.
        if self.cut or self.rng.random() < self.odds.lost:
            raise StoreUnavailable("no way to the server")
        return self.commands.read(block_ms)

    def acknowledge(self, ids: Iterable[str]) -> None:
        self._through(lambda: self.commands.acknowledge(ids))

    def _through(self, ask: Callable[[], T]) -> T:
        luck = self.rng.random(7)
        if luck[0] < self.odds.interrupted:
            self.meanwhile()
        self._survive(luck[5])
        if self.cut or luck[1] < self.odds.lost:
            raise StoreUnavailable("no way to the server")
        if luck[2] < self.odds.late:
            self.clock.later(float(self.rng.exponential(8.0)), ask)
            raise StoreUnavailable("no answer in time")
        answer = ask()
        if luck[3] < self.odds.doubled:
            with suppress(SinkError):
                ask()
        if luck[0] > 1 - self.odds.interrupted:
            self.meanwhile()
        self._survive(luck[6])
        if luck[4] < self.odds.unanswered:
            raise StoreUnavailable("the answer was lost")
        return answer

    def _survive(self, luck: float) -> None:
        if luck < self.odds.killed:
            raise Killed
