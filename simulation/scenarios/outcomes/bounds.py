"""Bounds for every strategy: the range that one bundle forces, and the effect of a loss."""

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
    """The effects of losing any one failure domain."""

    share: float
    """Share of the domains whose loss leaves no other broker above the limit."""
    worst: float
    """Usage of the hottest broker after the worst loss."""


def survival(
    carried: Floats, capacity: Floats, domain: Ints, limit: float, up: Bools | None = None
) -> Survival:
    """The effects if a domain's load went to the other brokers, the idlest filled first."""
    here = np.ones(carried.size, dtype=np.bool_) if up is None else up
    after = []
    for lost in np.unique(domain[here]).tolist():
        rest = here & (domain != lost)
        load = carried[here & (domain == lost)].sum()
        after.append(_filled(carried[rest], capacity[rest], float(load)))
    levels = np.array(after)
    return Survival(float((levels <= limit).mean()), float(levels.max()))


def _filled(carried: Floats, capacity: Floats, load: float) -> float:
    """Usage of the hottest broker after ``load`` was added to the idlest ones."""
    if not carried.size:
        return float("inf")
    usage = carried / capacity
    order = np.argsort(usage)
    # The level that the load reaches when spread over the first 1, 2, ... of them.
    reached = (np.cumsum(carried[order]) + load) / np.cumsum(capacity[order])
    return max(float(reached.min()), float(usage.max()))
