"""What no strategy can beat: how little must move, how far a bundle allows to balance.

least_moved:
  all brokers end with usage in a band [x, x + range]
  out(x) = what must leave those above it, in(x) = what must come to those below it
  the least is that of max(out, in) over all x: out falls and in rises with x, both in straight
  pieces, so it is where they cross
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.view import Bools, Floats, Ints


def least_moved(carried: Floats, capacity: Floats, within: float) -> float:
    """Load that any plan moves which ends with usages ``within`` of one another.

    (n,) ``carried`` load before the plan; exact where bundles are small.
    """
    mean = carried.sum() / capacity.sum()
    usage = carried / capacity

    def excess(x: float) -> tuple[float, float]:
        """What must leave, and what must come."""
        leaving = np.maximum(carried - capacity * (x + within), 0.0).sum()
        coming = np.maximum(capacity * x - carried, 0.0).sum()
        return float(leaving), float(coming)

    corners = np.concatenate((usage, usage - within))
    inside = corners[(corners > mean - within) & (corners < mean)]
    corners = np.unique(np.concatenate((inside, [mean - within, mean])))
    low, high = 0, corners.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        leaving, coming = excess(corners[middle])
        low, high = (middle, high) if leaving >= coming else (low, middle)
    (out, into), (less, more) = excess(corners[low]), excess(corners[high])
    surplus, lack = out - into, more - less
    if surplus <= 0 or lack <= 0:
        return max(out, into) if surplus <= 0 else max(less, more)
    x = corners[low] + (corners[high] - corners[low]) * surplus / (surplus + lack)
    return max(excess(x))


def floor(bundles: Floats, capacity: Floats) -> float:
    """Range (fraction) that the heaviest of the bundles leaves, alone on its best broker."""
    heaviest, best = bundles.max(), capacity.max()
    others = (bundles.sum() - heaviest) / (capacity.sum() - best)
    return max(0.0, float(heaviest / best - others))


@dataclass(frozen=True, slots=True)
class Survival:
    """Of the loss of any one failure domain."""

    share: float
    """Of the domains: after whose loss no other broker is above the limit."""
    worst: float
    """Usage of the hottest broker after the worst loss."""


def survival(
    carried: Floats, capacity: Floats, domain: Ints, limit: float, up: Bools | None = None
) -> Survival:
    """What would be if a domain's load went to the others, the idlest filled first."""
    here = np.ones(carried.size, dtype=np.bool_) if up is None else up
    after = []
    for lost in np.unique(domain[here]).tolist():
        rest = here & (domain != lost)
        load = carried[here & (domain == lost)].sum()
        after.append(_filled(carried[rest], capacity[rest], float(load)))
    levels = np.array(after)
    return Survival(float((levels <= limit).mean()), float(levels.max()))


def _filled(carried: Floats, capacity: Floats, load: float) -> float:
    """Usage of the hottest broker once ``load`` was poured over the idlest."""
    if not carried.size:
        return float("inf")
    usage = carried / capacity
    order = np.argsort(usage)
    # The level that the load reaches if it is spread over the first 1, 2, ... of them.
    reached = (np.cumsum(carried[order]) + load) / np.cumsum(capacity[order])
    return max(float(reached.min()), float(usage.max()))
