"""A fleet on which a plan is tried: the planner's only mutable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.shelf import Shelf


class BoardMove(NamedTuple):
    """Rows of a bundle, its source broker and its destination broker."""

    bundle: int
    source: int
    destination: int


class Band(NamedTuple):
    """A band of usage, in fractions."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Ground:
    """The common start of all trials on a fleet; ``brokers`` (k,) are the rows that take part."""

    fleet: Fleet
    brokers: Ints
    receivers: Ints
    """Those of ``brokers`` that may receive bundles; the others only give."""
    rows: Ints
    """Rows of the bundles that may move, ascending."""
    ends: Ints
    """(n + 1,) where the bundles of each broker begin in ``order``."""
    carried: Floats
    """(n,) load of each broker's bundles, whether they may move or not."""
    fixed: Floats
    """(n,) usage of each broker without the bundles that may move."""

    @classmethod
    def of(
        cls, fleet: Fleet, taking_part: Bools, may_go: Bools, receives: Bools | None = None
    ) -> Ground:
        """Build it for the brokers (n,) that take part and the bundles (m,) that may move.

        All brokers that take part may receive, unless ``receives`` (n,) selects some.
        """
        n, taking = len(fleet.usage), np.flatnonzero(taking_part)
        rows = np.flatnonzero(may_go & fleet.movable & taking_part[fleet.where])
        hosts = fleet.where[rows]
        ends = np.append(0, np.cumsum(np.bincount(hosts, minlength=n)))
        receivers = taking if receives is None else taking[receives[taking]]
        carried = np.bincount(fleet.where, fleet.size, n).astype(np.float64)
        fixed = fleet.usage - fleet.gain * np.bincount(hosts, fleet.size[rows], n)
        return cls(fleet, taking, receivers, rows, ends, carried, fixed)

    @cached_property
    def order(self) -> Ints:
        """``rows`` by broker and ascending in size: sorted only where a plan is needed."""
        rows = self.rows[np.argsort(self.fleet.size[self.rows], kind="stable")]
        # NumPy sorts 16-bit integers by radix, in a tenth of the time.
        narrow = np.uint16 if len(self.fleet.usage) < 1 << 16 else np.int64
        return rows[np.argsort(self.fleet.where[rows].astype(narrow), kind="stable")]

    @cached_property
    def largest(self) -> Floats:
        """(n,) size of each broker's largest bundle that may move; 0 if none may."""
        largest, some = np.zeros(len(self.fleet.usage)), np.diff(self.ends) > 0
        largest[some] = self.fleet.size[self.order[self.ends[1:][some] - 1]]
        return largest

    def reach(self, usage: Floats) -> tuple[float, float]:
        """Least and greatest ``usage`` (n,) of the brokers that take part; the least only of
        receivers: an idle broker that may not receive does not count."""
        high = float(usage[self.brokers].max(initial=-np.inf))
        return min(float(usage[self.receivers].min(initial=np.inf)), high), high

    @property
    def held(self) -> Bools:
        """(m,) whether each bundle is on a broker that takes part."""
        here = np.zeros(len(self.fleet.usage), np.bool_)
        here[self.brokers] = True
        return here[self.fleet.where]


class Standing:
    """The usage of a fleet's brokers while steps are applied to it, one after the other."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.usage = fleet.usage.copy()
        """(n,)"""
        self._used = None if fleet.takes is None else fleet.takes.used.copy()

    def arrived(self, step: BoardMove) -> float:
        """Usage of the step's destination once the bundle is there."""
        row, _, to = step
        fleet, takes = self._fleet, self._fleet.takes
        if takes is None or self._used is None:
            return float(self.usage[to] + fleet.size[row] * fleet.gain[to])
        return float(((self._used[:, to] + takes.need[:, row]) * takes.scale[:, to]).max())

    def apply(self, step: BoardMove) -> None:
        """Move the step's bundle."""
        row, source, to = step
        fleet, takes = self._fleet, self._fleet.takes
        if takes is None or self._used is None:
            self.usage[source] -= fleet.size[row] * fleet.gain[source]
            self.usage[to] += fleet.size[row] * fleet.gain[to]
            return
        self._used[:, source] -= takes.need[:, row]
        self._used[:, to] += takes.need[:, row]
        for broker in (source, to):
            self.usage[broker] = (self._used[:, broker] * takes.scale[:, broker]).max()

    @property
    def fleet(self) -> Fleet:
        """The fleet with this usage; where bundles are is the caller's to say."""
        takes = self._fleet.takes
        if takes is not None and self._used is not None:
            takes = replace(takes, used=self._used)
        return replace(self._fleet, usage=self.usage, takes=takes)


def stand(fleet: Fleet, steps: Sequence[BoardMove]) -> Standing:
    """The standing after the steps."""
    standing = Standing(fleet)
    for step in steps:
        standing.apply(step)
    return standing


class Board:
    """One trial. A bundle moves only once in a plan: it stays where it arrived.

    Brokers are in heaps by usage. A change of usage adds entries, and those with an outdated usage
    are dropped when they come to the top: so a move takes O(log n), not a look at all brokers.
    """

    def __init__(self, ground: Ground, keeps: Sequence[int]) -> None:
        """``keeps``: (n,) how many bundles each broker must keep: it may not lose its last one."""
        self._ground, self._keeps = ground, keeps
        self.gain: list[float] = ground.fleet.gain.tolist()
        self.usage: list[float] = ground.fleet.usage.tolist()
        self.steps: list[BoardMove] = []
        self._shelves: dict[int, Shelf] = {}
        self._hot = [(-self.usage[b], b) for b in ground.brokers.tolist()]
        self._cold = [(self.usage[b], b) for b in ground.receivers.tolist()]
        self._aside: list[tuple[float, int]] = []
        """The hot brokers that are set aside: they may still fill a cold one."""
        self._receivers = set(ground.receivers.tolist())
        heapify(self._hot)
        heapify(self._cold)

    def shelf(self, broker: int) -> Shelf:
        """The bundles that the broker may still give."""
        found = self._shelves.get(broker)
        if found is None:
            ground = self._ground
            rows = ground.order[ground.ends[broker] : ground.ends[broker + 1]]
            found = self._shelves[broker] = Shelf(rows, ground.fleet.size[rows])
        return found

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
        return len(self.shelf(broker).rows) > self._keeps[broker]

    def move(self, at: int, source: int, destination: int) -> None:
        """Move the bundle at a place of the source's shelf."""
        row, size = self.shelf(source).take(at)
        self.steps.append(BoardMove(row, source, destination))
        self.usage[source] -= size * self.gain[source]
        self.usage[destination] += size * self.gain[destination]
        for broker in (source, destination):
            heappush(self._hot, (-self.usage[broker], broker))
            if broker in self._receivers:
                heappush(self._cold, (self.usage[broker], broker))

    def reach(self) -> tuple[float, float]:
        """See `Ground.reach`."""
        return self._ground.reach(np.array(self.usage))

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
