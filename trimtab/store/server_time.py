"""Another machine's clock, as far as looks at it and one's own clock tell.

A look says of the difference between the two only that it lies between ``told - after`` and
``told - before``: what a slow answer leaves open is not taken for a jump. Where looks of the last
``window`` seconds cannot all be true of one difference, the clock has jumped.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class _Look(NamedTuple):
    at: float
    least: float
    most: float


class ServerTime:
    """All in seconds; ``margin``: how far looks may disagree.

    From any thread: each call reads or replaces the looks once. Of two looks at one time either may
    be lost.
    """

    def __init__(self, window: float, margin: float) -> None:
        self._window = window
        self._margin = margin
        self._looks: tuple[_Look, ...] = ()
        self._since = math.inf

    def look(self, before: float, told: float, after: float) -> None:
        """The other clock told its time between two times of one's own."""
        self._since = min(self._since, after)
        looks = (*self._looks, _Look(after, told - after, told - before))
        # The last one before the window stays: the clock may jump while nothing is asked.
        first = sum(look.at < after - self._window for look in looks[1:-1])
        self._looks = looks[first:]

    @property
    def drift(self) -> float:
        """By how much the clocks surely disagree on the time that passed within the window."""
        return _drift(self._looks)

    def watched(self, now: float) -> bool:
        """Whether the first look is a whole window ago: what was before it is not known."""
        return now - self._since >= self._window

    def estimate(self, now: float) -> float | None:
        """The other clock's time; None where it jumped, or was not watched for a window."""
        looks = self._looks
        if not self.watched(now) or _drift(looks) > self._margin:
            return None
        # Between all looks, and not the last one's middle: a slow answer may hide half of a jump.
        return now + (_highest(looks) + _lowest(looks)) / 2

    def estimate_ms(self, now: float) -> int | None:
        """The same in milliseconds."""
        estimate = self.estimate(now)
        return None if estimate is None else round(1000 * estimate)


def _drift(looks: tuple[_Look, ...]) -> float:
    return max(0.0, _highest(looks) - _lowest(looks))


def _highest(looks: tuple[_Look, ...]) -> float:
    """The most that the difference is at least."""
    return max((look.least for look in looks), default=0.0)


def _lowest(looks: tuple[_Look, ...]) -> float:
    return min((look.most for look in looks), default=0.0)
