"""The least load that must move to reach a range of usage.

All brokers that count end in a band [x, x + range]. out(x) is the load that must leave the brokers
above it, in(x) the load that must come to those below it; the least load is the minimum of
max(out, in) over all x. out falls and in rises with x, both piecewise linear, so it is where they
cross.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from trimtab.arrays import Bools, Floats


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
