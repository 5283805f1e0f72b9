"""The range of usage that one bundle forces: alone on the best broker, against all the rest.

A broker's last bundle goes only to a stronger broker (`trimtab.planner.search.outsized`), and what
its broker seems to take by itself goes with it: the two were only seen together.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.planner.search.ground import Ground
from trimtab.planner.search.several import outweigh

_TWO: Final = 2
"""The fewest brokers that have a range."""


def floor_of(ground: Ground) -> float:
    """The range that the largest bundle forces wherever it is."""
    top, others = stand_highest(ground)
    return max(top - others, 0.0)


def stand_highest(ground: Ground) -> tuple[float, float]:
    """Usage of the broker that one bundle makes hottest wherever it may go, with only that bundle,
    and of all the others."""
    takes = ground.fleet.takes
    if takes is not None:
        return outweigh(ground, takes)
    largest = stand_against(ground, largest_of(ground))
    return max(largest, _stand_alone(ground), key=lambda found: found[0] - found[1])


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


def _stand_alone(ground: Ground) -> tuple[float, float]:
    """Usage that a single bundle brings to the strongest broker, of all that are alone on theirs
    the one that stands out most, and of all the others; 0 if there is none."""
    fleet, brokers = ground.fleet, ground.brokers
    if len(brokers) < _TWO or not len(ground.receivers):
        return 0.0, 0.0
    usage, gain = fleet.usage[brokers], fleet.gain[brokers]
    lone = np.bincount(fleet.where, minlength=len(fleet.usage))[brokers] == 1
    speed = 1.0 / gain
    least = usage * np.minimum(fleet.gain[ground.receivers].min() * speed, 1.0)
    most = int(np.argmax(np.where(lone, least, -np.inf)))
    if not lone[most]:
        return 0.0, 0.0
    # Not as differences: the others' share in the fleet's speed may be lost in rounding.
    left = np.delete(speed, most)
    return float(least[most]), float((left * np.delete(usage, most)).sum() / left.sum())
