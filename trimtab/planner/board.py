"""A fleet while a plan is tried on it: the one value of the planner that changes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, nsmallest
from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.fleet import Fleet


class BoardMove(NamedTuple):
    """Rows of a bundle, of the broker it leaves and of the one it goes to."""

    bundle: int
    source: int
    destination: int


class Band(NamedTuple):
    """Usage, as fractions."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What every trial on a fleet starts from; ``brokers`` (k,) are the rows that take part."""

    fleet: Fleet
    brokers: Ints
    receivers: Ints
    """Those of ``brokers`` that may be given bundles; the others only give."""
    order: Ints
    """Rows of the bundles that may go, by broker and ascending in size."""
    ends: Ints
    """(n + 1,) where each broker's begin in ``order``."""
    fixed: Floats
    """(n,) usage of each broker by what may not go."""
    largest: Floats
    """(n,) size of the largest bundle of each that may; 0 where none may."""

    @classmethod
    def of(
        cls, fleet: Fleet, taking_part: Bools, may_go: Bools, receives: Bools | None = None
    ) -> Ground:
        """Of the brokers (n,) that take part and the bundles (m,) that may go between them.

        All that take part may receive, unless ``receives`` (n,) says which of them.
        """
        rows = np.flatnonzero(may_go & fleet.movable & taking_part[fleet.where])
        rows = rows[np.argsort(fleet.size[rows], kind="stable")]
        # NumPy sorts two bytes by radix, in a tenth of the time.
        brokers = fleet.where[rows].astype(np.uint16 if len(fleet.usage) < 1 << 16 else np.int64)
        rows = rows[np.argsort(brokers, kind="stable")]
        hosts, sizes = fleet.where[rows], fleet.size[rows]
        counts = np.bincount(hosts, minlength=len(fleet.usage))
        ends, taking = np.append(0, np.cumsum(counts)), np.flatnonzero(taking_part)
        receivers = taking if receives is None else taking[receives[taking]]
        fixed = fleet.usage - fleet.gain * np.bincount(hosts, sizes, len(counts))
        largest, some = np.zeros(len(counts)), counts > 0
        largest[some] = sizes[ends[1:][some] - 1]
        return cls(fleet, taking, receivers, rows, ends, fixed, largest)

    def reach(self, usage: Floats) -> tuple[float, float]:
        """Least and greatest ``usage`` (n,) of those that take part; that one which nothing may be
        given to is idle is no fault of the others."""
        high = float(usage[self.brokers].max(initial=-np.inf))
        return min(float(usage[self.receivers].min(initial=np.inf)), high), high

    @property
    def held(self) -> Bools:
        """(m,) which bundles are on brokers that take part."""
        here = np.zeros(len(self.fleet.usage), np.bool_)
        here[self.brokers] = True
        return here[self.fleet.where]


def shift(usage: Floats, fleet: Fleet, steps: Sequence[BoardMove]) -> None:
    """Change ``usage`` (n,) by what the steps move."""
    for row, source, destination in steps:
        usage[source] -= fleet.size[row] * fleet.gain[source]
        usage[destination] += fleet.size[row] * fleet.gain[destination]


class Shelf:
    """What a broker may give away, ascending in size."""

    def __init__(self, ground: Ground, broker: int) -> None:
        rows = ground.order[ground.ends[broker] : ground.ends[broker + 1]]
        self.rows: list[int] = rows.tolist()
        self.sizes: list[float] = ground.fleet.size[rows].tolist()

    def fitting(self, least: float, most: float) -> int | None:
        """Place of the smallest from ``least`` to ``most``."""
        at = bisect_left(self.sizes, least)
        return at if at < len(self.sizes) and self.sizes[at] <= most else None

    def largest(self, most: float) -> int | None:
        """Place of the largest that is not above ``most``."""
        at = bisect_right(self.sizes, most) - 1
        return at if at >= 0 else None

    def take(self, at: int) -> tuple[int, float]:
        """Row and size of what stands there, which is there no longer."""
        return self.rows.pop(at), self.sizes.pop(at)


class Board:
    """One trial. What a broker is given stays: a bundle moves once in a plan."""

    def __init__(self, ground: Ground, keeps: Sequence[int]) -> None:
        """``keeps``: (n,) how many bundles each broker must keep, for it may not lose its last."""
        self._ground, self._keeps = ground, keeps
        self.gain: list[float] = ground.fleet.gain.tolist()
        self.usage: list[float] = ground.fleet.usage.tolist()
        self.steps: list[BoardMove] = []
        self._shelves: dict[int, Shelf] = {}
        # Entries whose usage is no longer the broker's are dropped when they come to the top.
        self._hot = [(-self.usage[b], b) for b in ground.brokers.tolist()]
        self._cold = [(self.usage[b], b) for b in ground.receivers.tolist()]
        self._receivers = set(ground.receivers.tolist())
        heapify(self._hot)
        heapify(self._cold)

    def shelf(self, broker: int) -> Shelf:
        """What the broker may still give."""
        found = self._shelves.get(broker)
        if found is None:
            found = self._shelves[broker] = Shelf(self._ground, broker)
        return found

    def hottest(self) -> int | None:
        """Of those that are not set aside."""
        while self._hot and -self._hot[0][0] != self.usage[self._hot[0][1]]:
            heappop(self._hot)
        return self._hot[0][1] if self._hot else None

    def coldest(self) -> int | None:
        """Of those that are not set aside."""
        while self._cold and self._cold[0][0] != self.usage[self._cold[0][1]]:
            heappop(self._cold)
        return self._cold[0][1] if self._cold else None

    def set_aside_hottest(self) -> None:
        """It can give nothing that helps, until something else comes to it."""
        heappop(self._hot)

    def set_aside_coldest(self) -> None:
        """Nothing fits it, until something leaves it."""
        heappop(self._cold)

    def above(self, broker: int, level: float) -> float:
        """Load that the broker has above a level of usage; less than 0 is what it lacks."""
        return (self.usage[broker] - level) / self.gain[broker]

    def below(self, broker: int, level: float) -> float:
        """Load that the broker lacks of a level of usage; less than 0 is what it has above."""
        return -self.above(broker, level)

    def givers(self, most: int) -> list[int]:
        """The hottest brokers, hottest first, whether set aside or not."""
        brokers = self._ground.brokers.tolist()
        return nsmallest(most, brokers, key=lambda broker: (-self.usage[broker], broker))

    def may_give(self, broker: int) -> bool:
        """Whether the broker has more than it must keep."""
        return len(self.shelf(broker).rows) > self._keeps[broker]

    def move(self, at: int, source: int, destination: int) -> None:
        """Let what stands at a place of the source's shelf go."""
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
