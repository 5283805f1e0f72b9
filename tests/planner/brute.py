"""The fewest moves for a range by trying every placement: for fleets of a few bundles."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from trimtab.load_model.fleet import Fleet

ALIKE = 1e-9


class Best(NamedTuple):
    """The best of all placements in which each broker that has bundles keeps one of them."""

    moves: int
    range: float
    reached: bool
    """Whether the range is what was asked for; if not, it is the least there is."""


def best(fleet: Fleet, target: float) -> Best:
    """The fewest moves that bring the range to ``target``, or to the least there is if none can.

    All brokers are equal, and all bundles may move.
    """
    m, n, where = len(fleet.size), len(fleet.usage), fleet.where
    placements = np.array([*product(range(n), repeat=m)], dtype=np.int8)
    usage = np.stack([(placements == b) @ fleet.size for b in range(n)], axis=1)
    stays = placements == where
    kept = np.all([(stays[:, where == b]).any(axis=1) for b in np.unique(where)], axis=0)
    ranges, moves = np.ptp(usage, axis=1)[kept], (~stays[kept]).sum(axis=1)
    reached = bool((ranges <= target + ALIKE).any())
    width = target if reached else float(ranges.min())
    fewest = int(moves[ranges <= width + ALIKE].min())
    return Best(fewest, width, reached)
