"""The common start of a plan's trials: a fleet, the brokers that take part, what may move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.fleet import Fleet

_EPSILON: Final = 1e-9
"""Usage by which rounding may differ: a broker whose move was undone is as busy as at the start."""


def find_givers(usage: Floats, before: Floats) -> Bools:
    """(n,) whether brokers gave more than they got, by their (n,) usage and that ``before``."""
    less: Bools = usage < before - _EPSILON
    return less


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
    def carried_before(self) -> Floats:
        """(len(order) + 1,) load of the bundles before each place of ``order``."""
        before: Floats = np.append(0.0, np.cumsum(self.fleet.size[self.order]))
        return before

    @cached_property
    def largest(self) -> Floats:
        """(n,) size of each broker's largest bundle that may move; 0 if none may."""
        largest, some = np.zeros(len(self.fleet.usage)), np.diff(self.ends) > 0
        largest[some] = self.fleet.size[self.order[self.ends[1:][some] - 1]]
        return largest

    def bundles_of(self, broker: int) -> tuple[list[int], list[float], float]:
        """Rows and sizes of the broker's bundles that may move, ascending in size, and their sum.
        Do not change them: each trial asks."""
        found = self._bundles.get(broker)
        if found is None:
            rows = self.order[self.ends[broker] : self.ends[broker + 1]]
            sizes = self.fleet.size[rows].tolist()
            found = self._bundles[broker] = (rows.tolist(), sizes, sum(sizes))
        return found

    @cached_property
    def _bundles(self) -> dict[int, tuple[list[int], list[float], float]]:
        return {}

    def extremes(self, usage: Floats) -> tuple[float, float]:
        """Least and greatest ``usage`` (n,) of the brokers that take part. The least is that of
        receivers, and of brokers that gave: an idle broker that may not receive does not count, but
        a plan that fills the coldest receiver from one makes another coldest broker."""
        taking = usage[self.brokers]
        high = float(taking.max(initial=-np.inf))
        low = float(usage[self.receivers].min(initial=np.inf))
        if len(self.receivers) < len(self.brokers):
            counts = find_givers(taking, self.fleet.usage[self.brokers])
            low = float(taking.min(initial=low, where=counts))
        return min(low, high), high

    @property
    def held(self) -> Bools:
        """(m,) whether each bundle is on a broker that takes part."""
        here = np.zeros(len(self.fleet.usage), np.bool_)
        here[self.brokers] = True
        return here[self.fleet.where]
