"""The network between a process and the store: it loses, delays and doubles requests and answers.

During every request others act and time passes, or the process that asks dies. So whatever the
process does between two requests, it may do after a pause of any length, or never. What it reads
in pages it reads at several moments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol, TypeVar

import numpy as np

from simulation.ownership.redis.server import MemoryServer
from sinks.errors import SinkError, StoreUnavailable
from trimtab.wire.ownership import Record

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
    """A pause of several seconds, perhaps longer than a lease."""
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
