"""A fleet on which a plan is tried: the planner's only mutable value."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter

import numpy as np

from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.shelf import Shelf


class _Shelves(dict[int, Shelf]):
    """What each broker may still give: a trial looks at few of a large fleet's brokers."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._ground = ground

    def __missing__(self, broker: int) -> Shelf:
        found = self[broker] = Shelf(*self._ground.bundles_of(broker))
        return found


class Board:
    """One trial. A bundle moves only once in a plan: it stays where it arrived.

    Brokers are in heaps by usage. A change of usage adds entries, and those with an outdated usage
    are dropped when they come to the top: so a move takes O(log n), not a look at all brokers.
    """

    def __init__(self, ground: Ground, keeps: Sequence[int]) -> None:
        """``keeps``: (n,) how many bundles each broker must keep: it may not lose its last one."""
        self._ground, self._keeps = ground, keeps
        self.shelves = _Shelves(ground)
        self.gain: list[float] = ground.fleet.gain.tolist()
        self.usage: list[float] = ground.fleet.usage.tolist()
        self.steps: list[BoardMove] = []
        self._hot = [(-self.usage[b], b) for b in ground.brokers.tolist()]
        self._cold = [(self.usage[b], b) for b in ground.receivers.tolist()]
        self._aside: list[tuple[float, int]] = []
        """The hot brokers that are set aside: they may still fill a cold one."""
        self._receivers = set(ground.receivers.tolist())
        heapify(self._hot)
        heapify(self._cold)

    def hottest(self) -> int | None:
        """The hottest broker that is not set aside."""
        return self._hot[0][1] if self._drop_outdated(self._hot) else None

    def coldest(self) -> int | None:
        """The coldest receiver that is not set aside."""
        while self._cold and self._cold[0][0] != self.usage[self._cold[0][1]]:
            heappop(self._cold)
        return self._cold[0][1] if self._cold else None

    def set_aside_hottest(self) -> None:
        """Skip the hottest broker, which can give nothing that helps, until its usage changes."""
        heappush(self._aside, _take_top(self._hot))

    def set_aside_coldest(self) -> None:
        """Skip the coldest broker, which nothing fits, until its usage changes."""
        _take_top(self._cold)

    def above(self, broker: int, level: float) -> float:
        """The broker's load above a level of usage; negative if it is below."""
        return (self.usage[broker] - level) / self.gain[broker]

    def below(self, broker: int, level: float) -> float:
        """The load that the broker lacks to a level of usage; negative if it is above."""
        return -self.above(broker, level)

    def givers(self, most: int) -> list[int]:
        """The hottest brokers, hottest first, whether set aside or not."""
        found: dict[int, tuple[list[tuple[float, int]], tuple[float, int]]] = {}
        while len(found) < most:
            heaps = [heap for heap in (self._hot, self._aside) if self._drop_outdated(heap)]
            if not heaps:
                break
            heap = min(heaps, key=itemgetter(0))
            entry = _take_top(heap)
            found.setdefault(entry[1], (heap, entry))
        for heap, entry in found.values():
            heappush(heap, entry)
        return [*found]

    def may_give(self, broker: int) -> bool:
        """Whether the broker has more bundles than it must keep."""
        return len(self.shelves[broker].rows) > self._keeps[broker]

    def move(self, at: int, source: int, destination: int) -> None:
        """Move the bundle at a place of the source's shelf."""
        row, size = self.shelves[source].take(at)
        self.steps.append(BoardMove(row, source, destination))
        for broker, more in ((source, -size), (destination, size)):
            usage = self.usage[broker] = self.usage[broker] + more * self.gain[broker]
            heappush(self._hot, (-usage, broker))
            if broker in self._receivers:
                heappush(self._cold, (usage, broker))

    def extremes(self) -> tuple[float, float]:
        """See `Ground.extremes`."""
        return self._ground.extremes(np.array(self.usage))

    def _drop_outdated(self, heap: list[tuple[float, int]]) -> bool:
        """Whether anything is left of a heap of the hottest after that."""
        while heap and -heap[0][0] != self.usage[heap[0][1]]:
            heappop(heap)
        return bool(heap)


def _take_top(heap: list[tuple[float, int]]) -> tuple[float, int]:
    """Remove the top entry; it is there twice if a broker's usage is again what it was."""
    entry = heappop(heap)
    while heap and heap[0] == entry:
        heappop(heap)
    return entry
