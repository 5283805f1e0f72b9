"""Shows that this driver acts, for as long as it is fit to."""

from __future__ import annotations

from collections.abc import Callable

from sinks.errors import Fenced
from streaming.leader.leadership import Leadership
from streaming.shutdown import FENCED, UNREACHABLE, Shutdown


class Heartbeat:
    """``away_seconds`` tells for how long Redis has not answered; a driver that waits longer than
    ``yield_seconds`` leaves the claim to one that may reach it (0: never)."""

    def __init__(
        self,
        tenure: Leadership,
        away_seconds: Callable[[], float],
        yield_seconds: float,
        ending: Shutdown,
    ) -> None:
        self._tenure = tenure
        self._away_seconds = away_seconds
        self._yield_seconds = yield_seconds
        self._ending = ending

    def beat(self) -> None:
        """Ends the driver where another one has taken over, or is to."""
        try:
            self._tenure.beat()
        except Fenced:
            self._ending.because(FENCED, "a newer job has taken over")
        away = self._away_seconds()
        if 0 < self._yield_seconds <= away:
            self._ending.because(UNREACHABLE, f"Redis has not answered for {away:.0f} s")
