"""Compares Redis's clock, by which leases run out, with the driver's own that cannot be set.

A look says of the difference between the two only that it lies between ``told - after`` and
``told - before``: what a slow answer leaves open is not taken for a jump.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sinks.errors import SinkError
from trimtab.doubt import Doubt


class _Look(NamedTuple):
    at: float
    least: float
    most: float


class ServerClock:
    """``ask`` tells the server's time, ``clock`` the own; all in seconds.

    ``window`` is a lease's time and ``margin`` what brokers allow for within it.
    """

    def __init__(
        self, ask: Callable[[], float], clock: Callable[[], float], window: float, margin: float
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._window = window
        self._margin = margin
        self._looks: deque[_Look] = deque()
        self._since = math.inf
        self._away_since: float | None = None
        self.drift = 0.0
        """By how much the clocks surely disagree on the time that passed within the window."""

    def look(self) -> None:
        """Ask once; raises SinkError where there is no answer."""
        before = self._clock()
        try:
            told = self._ask()
        except SinkError:
            if self._away_since is None:
                self._away_since = before
            raise
        after = self._clock()
        self._away_since = None
        self._since = min(self._since, after)
        self._looks.append(_Look(after, told - after, told - before))
        # The last one before the window stays: the clock may jump while nobody can look.
        while len(self._looks) > 2 and self._looks[1].at < after - self._window:
            self._looks.popleft()
        highest, lowest = max(x.least for x in self._looks), min(x.most for x in self._looks)
        self.drift = max(0.0, highest - lowest)

    def level(self) -> Doubt | None:
        """None for a lease's time after the first look: nobody knows what was before it."""
        if self.drift > self._margin:
            return Doubt.UNSTABLE
        return Doubt.STABLE if self._clock() - self._since >= self._window else None

    def away_seconds(self) -> float:
        """For how long there has been no answer; 0 if the last look had one."""
        since = self._away_since
        return 0.0 if since is None else self._clock() - since
