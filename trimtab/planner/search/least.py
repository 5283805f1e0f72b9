"""The least that must move to reach a range of usage: the least load, and the fewest bundles.

All brokers that count end in a band [x, x + range]. out(x) is the load that must leave the brokers
above it, in(x) the load that must come to those below it; the least load is the minimum of
max(out, in) over all x. out falls and in rises with x, both piecewise linear, so it is where they
cross.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.planner.search.ground import Band, Ground

_EPSILON: Final = 1e-9
"""Tolerance for rounding, of usage: what a broker need not lose is not counted."""


def least_moved(
    usage: Floats, speed: Floats, within: float, receives: Bools | None = None
) -> float:
    """The load that every plan must move whose final usages are ``within`` of each other.

    (n,) ``usage`` is before the plan, ``speed`` is the load that causes a usage of 1, ``receives``
    (None: all) says which brokers receive; the others may stay below. Exact if bundles are small.
    """
    taken = speed if receives is None else speed * receives

    def out(x: float) -> float:
        return float((speed * np.maximum(usage - within - x, 0.0)).sum())

    def lacks(x: float) -> float:
        """in(x) minus out(x)."""
        return float((taken * np.maximum(x - usage, 0.0)).sum()) - out(x)

    corners = np.unique(np.concatenate((usage, usage - within)))
    at = bisect_left(corners, 0.0, key=lacks)
    if at == 0:
        return 0.0
    low, high = corners[at - 1], corners[at]
    few, many = lacks(low), lacks(high)
    return out(low + (high - low) * few / (few - many))


def fewest_leaving(ground: Ground, band: Band) -> int:
    """How many bundles every plan moves that leaves no broker above the band: of each broker above
    it the largest, until the rest fits. A broker that stays above it without any is left out."""
    usage, hosts = ground.fleet.usage, ground.brokers
    hot = hosts[(usage[hosts] > band.high + _EPSILON) & (ground.fixed[hosts] <= band.high)]
    ends, carried = ground.ends[hot + 1], ground.carried_before
    need = (usage[hot] - band.high - _EPSILON) / ground.fleet.gain[hot]
    # The first so many bundles of a broker may stay, in their order.
    stay = np.searchsorted(carried, carried[ends] - need, side="right") - 1
    return int((ends - np.maximum(stay, ground.ends[hot])).sum())
