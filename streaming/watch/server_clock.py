"""Compares Redis's clock, by which leases expire, with the driver's own monotonic clock."""

from __future__ import annotations

from collections.abc import Callable

from sinks.errors import SinkError
from trimtab.doubt import Doubt
from trimtab.ownership import CLOCK_MARGIN_MS
from trimtab.store.server_time import ServerTime


class ServerClock:
    """``ask`` returns the server's time, ``clock`` the driver's; all in seconds.

    ``window`` is a lease's time and ``margin`` the jump that brokers allow for within it.
    """

    def __init__(
        self, ask: Callable[[], float], clock: Callable[[], float], window: float, margin: float
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._margin = margin
        self._time = ServerTime(window, min(margin, CLOCK_MARGIN_MS / 1000))
        self._away_since: float | None = None

    def look(self) -> None:
        """Ask once; raises SinkError if there is no answer."""
        before = self._clock()
        try:
            told = self._ask()
        except SinkError:
            if self._away_since is None:
                self._away_since = before
            raise
        self._away_since = None
        self._time.look(before, told, self._clock())

    @property
    def drift(self) -> float:
        """The least by which the clocks disagree on the time that passed within the window."""
        return self._time.drift

    def level(self) -> Doubt | None:
        """The doubt; None for a lease's time after the first look, as earlier jumps are unknown."""
        if self.drift > self._margin:
            return Doubt.UNSTABLE
        return Doubt.STABLE if self._time.watched(self._clock()) else None

    def estimate_ms(self) -> int | None:
        """The server's time by our clock; None if it jumped, or was not watched long enough."""
        return self._time.estimate_ms(self._clock())

    def away_seconds(self) -> float:
        """How long there has been no answer; 0 if the last look had one."""
        since = self._away_since
        return 0.0 if since is None else self._clock() - since
