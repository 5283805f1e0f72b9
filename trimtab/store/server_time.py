"""Estimates another machine's clock from readings of it (looks) and the local clock.

A look only shows that the difference of the two clocks lies between ``told - after`` and
``told - before``, so a slow answer is not mistaken for a jump. If no single difference fits all
looks of the last ``window`` seconds, the clock has jumped.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class _Look(NamedTuple):
    at: float
    least: float
    most: float


class _Looks(NamedTuple):
    """The looks of a window, the oldest first, and what all of them together say."""

    looks: tuple[_Look, ...]
    least: float
    """The greatest lower bound on the difference."""
    most: float
    """The least upper bound."""

    @classmethod
    def of(cls, looks: tuple[_Look, ...]) -> _Looks:
        """Combine one or more looks."""
        return cls(looks, max(look.least for look in looks), min(look.most for look in looks))

    @property
    def drift(self) -> float:
        return max(0.0, self.least - self.most)


class ServerTime:
    """The other clock's time; all in seconds. ``margin`` is how far looks may disagree.

    Safe to use from any thread: each call reads or replaces the looks once. Of two simultaneous
    looks, either may be lost.
    """

    def __init__(self, window: float, margin: float) -> None:
        self._window = window
        self._margin = margin
        self._looks = _Looks((), 0.0, 0.0)
        self._since = math.inf

    def look(self, before: float, told: float, after: float) -> None:
        """Note that the other clock showed ``told`` between two local times."""
        self._since = min(self._since, after)
        looks = (*self._looks.looks, _Look(after, told - after, told - before))
        # The last look before the window stays: the clock may jump between looks.
        first = sum(look.at < after - self._window for look in looks[1:-1])
        self._looks = _Looks.of(looks[first:])

    @property
    def drift(self) -> float:
        """How much the clocks at least disagree on the time passed within the window."""
        return self._looks.drift

    def watched(self, now: float) -> bool:
        """Whether the first look is a full window ago; before it nothing is known."""
        return now - self._since >= self._window

    def estimate(self, now: float) -> float | None:
        """The other clock's time; None if it jumped, or was not watched for a full window."""
        looks = self._looks
        if not self.watched(now) or looks.drift > self._margin:
            return None
        # The middle of all looks, not of the last: a slow answer may hide half of a jump.
        return now + (looks.least + looks.most) / 2

    def estimate_ms(self, now: float) -> int | None:
        """`estimate` in milliseconds."""
        estimate = self.estimate(now)
        return None if estimate is None else round(1000 * estimate)
