"""The range of usage that one bundle forces: alone on the best broker, against all the rest."""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.planner.search.ground import Ground
from trimtab.planner.search.several import outweigh

_TWO: Final = 2
"""The fewest brokers that have a range."""


def floor_of(ground: Ground) -> float:
    """The range that the largest bundle forces wherever it is."""
    if ground.fleet.takes is not None:
        top, others = outweigh(ground, ground.fleet.takes)
        return max(top - others, 0.0)
    return floor_at(ground, largest_of(ground))


def largest_of(ground: Ground) -> float:
    """Size of the largest bundle on a broker that takes part."""
    return float(ground.fleet.size.max(initial=0.0, where=ground.held))


def floor_at(ground: Ground, size: float) -> float:
    """The range that a bundle of this size forces: alone on a broker against all the rest."""
    alone, others = stand_against(ground, size)
    return max(alone - others, 0.0)


def stand_against(ground: Ground, size: float) -> tuple[float, float]:
    """Usage of the best broker for a bundle of this size, with only it, and of all the others."""
    fleet, brokers = ground.fleet, ground.brokers
    if len(brokers) < _TWO:
        return 0.0, 0.0
    carried = ground.carried
    rest = fleet.usage - fleet.gain * carried
    alone = rest + fleet.gain * size
    host = int(np.argmin(alone[brokers]))
    left = np.delete(brokers, host)
    speed = 1.0 / fleet.gain[left]
    others = (carried[brokers].sum() - size + (speed * rest[left]).sum()) / speed.sum()
    return float(alone[brokers][host]), float(others)
