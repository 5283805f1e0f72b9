"""The leader's heartbeat; it gives up the claim while Redis is unreachable."""

from __future__ import annotations

from collections.abc import Callable

from sinks.errors import Fenced
from streaming.leader.leadership import Leadership
from streaming.shutdown import FENCED, UNREACHABLE, Shutdown


class Heartbeat:
    """``away_seconds`` returns how long Redis has not answered; after ``yield_seconds`` the driver
    gives the claim up to one that may reach Redis (0: never)."""

    def __init__(
        self,
        leadership: Leadership,
        away_seconds: Callable[[], float],
        yield_seconds: float,
        shutdown: Shutdown,
    ) -> None:
        self._leadership = leadership
        self._away_seconds = away_seconds
        self._yield_seconds = yield_seconds
        self._shutdown = shutdown

    def beat(self) -> None:
        """Send a heartbeat; ends the driver if another one has taken over, or should."""
        try:
            self._leadership.beat()
        except Fenced:
            self._shutdown.because(FENCED, "a newer job has taken over")
        away = self._away_seconds()
        if 0 < self._yield_seconds <= away:
            self._shutdown.because(UNREACHABLE, f"Redis has not answered for {away:.0f} s")
