"""Which broker served what and when, written down by the brokers themselves.

One clock for all, CLOCK_BOOTTIME: an agent that tells its time by another one says what that shows.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import NamedTuple

from agent.clock import boot_clock
from agent.ownership.holdings import Holdings
from trimtab.model import Epoch


class Clock:
    """An agent's clock that runs ``rate`` times as fast as the true one."""

    def __init__(self, rate: float = 1.0) -> None:
        self._rate = rate
        self._origin = boot_clock()

    def __call__(self) -> float:
        return self._origin + (boot_clock() - self._origin) * self._rate

    def true(self, shown: float) -> float:
        """The true time at which this clock shows that."""
        return self._origin + (shown - self._origin) / self._rate


class Span(NamedTuple):
    """A time in which a broker would have served clients of the bundle."""

    bundle: str
    broker: str
    begin: float
    end: float


class Diary:
    """What all brokers of a fleet noted; any thread may write."""

    def __init__(self, now: Callable[[], float] = boot_clock) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._spans: list[Span] = []
        self._since: dict[tuple[str, str], float] = {}
        self._until: dict[str, float] = {}

    def spans(self) -> list[Span]:
        """All spans up to now, also those that have not ended."""
        with self._lock:
            lasting = [self._span(*key, since) for key, since in self._since.items()]
            return [span for span in (*self._spans, *lasting) if span.begin < span.end]

    def begins(self, broker: str, bundle: str) -> None:
        with self._lock:
            self._since.setdefault((broker, bundle), self.now())

    def ends(self, broker: str, bundle: str | None = None) -> None:
        """A broker stops serving one bundle, or all of them."""
        with self._lock:
            for key in [k for k in self._since if k[0] == broker and bundle in (None, k[1])]:
                self._spans.append(self._span(*key, self._since.pop(key)))

    def leased(self, broker: str, until: float) -> None:
        """Note until when the lease of ``broker`` lasts."""
        with self._lock:
            now = self.now()
            if self._until.get(broker, -math.inf) < now:
                # Since its lease ended it could serve nothing.
                for key in [k for k in self._since if k[0] == broker]:
                    self._spans.append(self._span(*key, self._since[key]))
                    self._since[key] = now
            self._until[broker] = until

    def _span(self, broker: str, bundle: str, since: float) -> Span:
        return Span(bundle, broker, since, min(self.now(), self._until.get(broker, -math.inf)))


class WrittenDown(Holdings):
    """Notes a start before it happens and an end after it, so that no time of serving is missed."""

    def __init__(self, diary: Diary, broker: str, clock: Clock) -> None:
        super().__init__(clock)
        self._diary, self._broker, self._shows = diary, broker, clock
        self._dead = False

    def die(self) -> None:
        """Serve nothing from now on, even if the agent still believes that it may."""
        self._dead = True
        self._diary.ends(self._broker)

    def extend(self, until: float) -> None:
        if not self._dead:
            self._diary.leased(self._broker, self._shows.true(until))
        super().extend(until)

    def hold(self, bundle: str, epoch: Epoch) -> None:
        if not self._dead:
            self._diary.begins(self._broker, bundle)
        super().hold(bundle, epoch)

    def drop(self, bundle: str) -> None:
        super().drop(bundle)
        if not self._dead:
            self._diary.ends(self._broker, bundle)

    def clear(self) -> None:
        super().clear()
        if not self._dead:
            self._diary.ends(self._broker)
