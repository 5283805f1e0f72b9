"""Caches which broker owns which part of which ring: by bundle, never by topic.

Overlapping ranges come from before and after a split: the newer epoch wins, as children's epochs
are above their parent's. A range whose owner was found wrong stays, without a place, so that an
older answer still in flight does not bring the wrong owner back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass

from trimtab.model import FULL_RANGE_END, Epoch, HashRange, parse_bundle
from trimtab.wire.lookup import ServiceUrls


@dataclass(frozen=True, slots=True)
class Place:
    """The broker that serves a bundle, since ``epoch``."""

    bundle: str
    broker: str
    epoch: Epoch
    proxied: bool = False
    """Connect to the service URL and name ``broker`` there."""
    urls: ServiceUrls | None = None
    """Where ``broker`` listens, if the answer says so."""


@dataclass(frozen=True, slots=True)
class Known:
    """A cached bundle: its place, unless that was found wrong."""

    bundle: str
    span: HashRange
    since: Epoch
    """Answers with an older epoch are not news."""
    place: Place | None


def holds(span: HashRange, where: int) -> bool:
    """Whether a position is in a range; the end of the ring is in the last one."""
    return span.low <= where < span.high or where == span.high == FULL_RANGE_END


class Places:
    """The ``most`` recently used bundles. One thread at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, int], Known] = OrderedDict()
        self._lows: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, namespace: str, where: int) -> Known | None:
        """The cached bundle that holds a position."""
        lows = self._lows.get(namespace, ())
        row = bisect_right(lows, where) - 1
        if row < 0:
            return None
        key = namespace, lows[row]
        known = self._known[key]
        if not holds(known.span, where):
            return None
        self._known.move_to_end(key)
        return known

    def note(self, bundle: str, since: Epoch, place: Place | None) -> bool:
        """Replace the cached entries of the bundle's range; False if this is not news.

        News is newer, or as old as an entry that was found wrong. Raises InvalidName.
        """
        namespace, span = parse_bundle(bundle)
        keys = [(namespace, low) for low in self._overlapping(namespace, span)]
        known = [self._known[key] for key in keys]
        if any(each.since > since or (each.since == since and each.place) for each in known):
            return False
        for key in keys:
            self._forget(key)
        insort(self._lows.setdefault(namespace, []), span.low)
        self._known[namespace, span.low] = Known(bundle, span, since, place)
        if len(self._known) > self._most:
            self._forget(next(iter(self._known)))
        return True

    def _overlapping(self, namespace: str, span: HashRange) -> list[int]:
        lows = self._lows.get(namespace, [])
        first = max(0, bisect_right(lows, span.low) - 1)
        touched = lows[first : bisect_left(lows, span.high)]
        return [low for low in touched if self._known[namespace, low].span.high > span.low]

    def _forget(self, key: tuple[str, int]) -> None:
        namespace, low = key
        del self._known[key]
        lows = self._lows[namespace]
        del lows[bisect_left(lows, low)]
        if not lows:
            del self._lows[namespace]
