"""The range of a pool's brokers: what no plan can narrow, and what is left after some moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.load_model.fleet import Fleet
from trimtab.planner.pools import Pool
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.standing import stand


def find_forced_range(ground: Ground, pool: Pool) -> float:
    """The range that immovable load forces on the pool: its hottest broker with only that load,
    against all other brokers with everything that can move."""
    fleet, brokers = ground.fleet, ground.brokers
    may_go = (pool.free if pool.grouped is None else pool.free | pool.grouped) & fleet.movable
    offered = np.bincount(fleet.where[may_go], fleet.size[may_go], len(fleet.usage))[brokers]
    gain = fleet.gain[brokers]
    fixed = fleet.usage[brokers] - gain * offered
    hottest = int(np.argmax(fixed))
    speed = 1.0 / np.delete(gain, hottest)
    others = (offered.sum() + (speed * np.delete(fixed, hottest)).sum()) / speed.sum()
    return max(float(fixed[hottest] - others), 0.0)


def find_range_after(ground: Ground, fleet: Fleet, steps: Sequence[BoardMove]) -> float:
    """The range after the steps."""
    low, high = ground.extremes(stand(fleet, steps).usage)
    return high - low
