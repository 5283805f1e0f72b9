"""Bounds how often one caller may change things: a token bucket for each."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

MOST_CALLERS = 10_000
"""Callers that are remembered; the one seen longest ago is forgotten."""


class RateLimit:
    """``per_minute`` changes of a caller, all at once if need be. Any number of threads may ask."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self.per_minute, self._clock = per_minute, clock
        self._lock = Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def wait_s(self, caller: str) -> float:
        """Count a change; 0 if it is within the limit, else the seconds until one will be."""
        a_second = self.per_minute / 60
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(caller, (self.per_minute, now))
            left = min(self.per_minute, left + (now - at) * a_second)
            self._left[caller] = (left - 1 if left >= 1 else left, now)
            if len(self._left) > MOST_CALLERS:
                del self._left[next(iter(self._left))]
        return 0.0 if left >= 1 else (1 - left) / a_second
