"""The least load that must move for a range of usage.

All that count end with usage in a band [x, x + range]. out(x) is what must leave those above it,
in(x) what must come to those below it; the least is that of max(out, in) over all x. out falls and
in rises with x, both in straight pieces, so it is where they cross.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from trimtab.arrays import Bools, Floats


def least_moved(
    usage: Floats, speed: Floats, within: float, receives: Bools | None = None
) -> float:
    """Load that any plan moves which ends with usages ``within`` of one another.

    (n,) ``usage`` before the plan, ``speed``: the load that makes a usage of 1, and who
    ``receives`` (None: all); one that does not may stay below. Exact where bundles are small.
    """
    taken = speed if receives is None else speed * receives

    def out(x: float) -> float:
        return float((speed * np.maximum(usage - within - x, 0.0)).sum())

    def lacks(x: float) -> float:
        """in(x) less out(x)."""
        return float((taken * np.maximum(x - usage, 0.0)).sum()) - out(x)

    corners = np.unique(np.concatenate((usage, usage - within)))
    at = bisect_left(corners, 0.0, key=lacks)
    if at == 0:
        return 0.0
    low, high = corners[at - 1], corners[at]
    few, many = lacks(low), lacks(high)
    return out(low + (high - low) * few / (few - many))
