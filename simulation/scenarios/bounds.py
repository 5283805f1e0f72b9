"""What no strategy can beat: how far a bundle allows to balance; and what a loss would leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.arrays import Bools, Floats, Ints


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
