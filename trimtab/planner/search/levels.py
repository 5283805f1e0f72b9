"""Where the bands of usage are: around the level at which the load is spread evenly."""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.planner.search.ground import Band, Ground


def positions(low: float, high: float, mean: float, width: float, count: int) -> list[Band]:
    """Bands of this width around the mean usage, the middle one first; ``low`` and ``high`` are the
    fleet's least and greatest usage, which a band need not exceed."""
    places = [0.5] + [
        0.5 + sign * step / (count + 1) for step in range(1, count // 2 + 1) for sign in (1, -1)
    ]
    bands = [Band(mean - place * width, mean + (1 - place) * width) for place in places[:count]]
    return [band for band in bands if band.low < high and band.high > low]


def mean_of(ground: Ground) -> float:
    """The usage of every broker if the load were spread evenly; brokers below it that may not
    receive are left out."""
    brokers = ground.brokers
    level = _level(ground, brokers)
    if len(ground.receivers) < len(brokers):
        below = brokers[ground.fleet.usage[brokers] < level]
        left_out = np.setdiff1d(below, ground.receivers)
        level = _level(ground, np.setdiff1d(brokers, left_out))
    return level


def _level(ground: Ground, brokers: Ints) -> float:
    fleet = ground.fleet
    carried = ground.carried[brokers]
    gain: Floats = fleet.gain[brokers]
    rest = fleet.usage[brokers] - gain * carried
    # All at one usage u: each carries (u - rest) / gain, together the whole load.
    speed = 1.0 / gain
    return float((carried.sum() + (rest * speed).sum()) / speed.sum())
