"""Fleets by a few numbers, and what a plan makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from trimtab.arrays import Floats
from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.fewest_moves import find_plan
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.trial import Trial

EFFORT = 400_000


@dataclass(frozen=True)
class Carried:
    """Brokers by the sizes of their bundles; usage is their sum, times the broker's gain."""

    bundles: Sequence[Sequence[float]]
    gain: Sequence[float] = ()
    """1 of each unless given."""

    @property
    def fleet(self) -> Fleet:
        """Bundles in order of their brokers."""
        n = len(self.bundles)
        where = np.repeat(np.arange(n), [len(sizes) for sizes in self.bundles])
        size = np.array([size for sizes in self.bundles for size in sizes], dtype=np.float64)
        gain = np.array(self.gain or [1.0] * n)
        return fleet_of(size, where, gain)


def fleet_of(size: Floats, where: np.ndarray, gain: Floats) -> Fleet:
    """All usage is of bundles, and all of them are movable."""
    return Fleet(
        usage=gain * np.bincount(where, size, len(gain)),
        gain=gain,
        size=size,
        where=where.astype(np.int64),
        movable=np.ones(len(size), np.bool_),
        variance=np.zeros(len(gain)),
        hidden=np.zeros(len(gain)),
        whole=1.0,
        struck=False,
    )


def ground_of(fleet: Fleet) -> Ground:
    """Everybody takes part, everything may go."""
    return Ground.of(fleet, np.ones(len(fleet.usage), np.bool_), np.ones(len(fleet.size), np.bool_))


def keeps(fleet: Fleet) -> list[int]:
    """One bundle of each broker that has any."""
    counts = np.bincount(fleet.where, minlength=len(fleet.usage))
    return [min(count, 1) for count in counts.tolist()]


def plan(fleet: Fleet, target: float, effort: int = EFFORT) -> Trial:
    """What the search makes of it."""
    return find_plan(ground_of(fleet), keeps(fleet), target, effort)


def usage_after(fleet: Fleet, steps: Iterable[BoardMove]) -> Floats:
    """(n,) of each broker."""
    usage = fleet.usage.copy()
    for bundle, source, destination in steps:
        usage[source] -= fleet.size[bundle] * fleet.gain[source]
        usage[destination] += fleet.size[bundle] * fleet.gain[destination]
    return usage


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Up to eight brokers, alike or not, with ties, idle ones and giants."""
    n = draw(st.integers(2, 8))
    size = st.one_of(st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.4]), st.floats(1e-4, 0.5))
    sizes = draw(st.lists(size, min_size=1, max_size=40))
    where = draw(
        st.lists(st.integers(0, n - 1), min_size=len(sizes), max_size=len(sizes)).map(np.array)
    )
    gain = st.one_of(st.just([1.0] * n), st.lists(GAINS, min_size=n, max_size=n))
    return fleet_of(np.array(sizes), where, np.array(draw(gain)))


GAINS = st.sampled_from([0.25, 0.5, 1.0, 1.7])
targets = st.sampled_from([0.001, 0.02, 0.049, 0.1, 0.3])
