"""A bundle becomes two, where it is: the upper half of its range gets a row of its own.

topics = halved, the greater part stays below
load   = halved with the range; what is in one topic stays below, and once that topic is alone
         there, all the rest is above
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulation.scenarios.world import World
from trimtab.names import PackedNames

_COLUMNS: Final = ("base", "solid", "topics", "origin", "owner", "arrived_ms", "namespace")


def divide(world: World, row: int) -> tuple[str, ...]:
    """The names of the halves; none where there is nothing to divide."""
    low, high = world.ranges[:, row].tolist()
    topics = int(world.topics[row])
    if topics < 2 or high - low < 2:
        return ()
    rest = float(world.base[row] - world.solid[row])
    alone = world.solid[row] > 0 and topics - topics // 2 == 1
    above = rest if alone else rest / 2
    _append(world, row)
    world.base[row] -= above
    world.base[-1], world.solid[-1] = above, 0.0
    world.topics[row], world.topics[-1] = topics - topics // 2, topics // 2
    world.ranges[1, row] = world.ranges[0, -1] = low + (high - low) // 2
    _rename(world, row)
    world.halved.append((row, world.base.size - 1))
    world.unseen += world.halved[-1]
    world.forget_loads()
    return world.names[row], world.names[-1]


def _append(world: World, row: int) -> None:
    """A row more in each column, equal to ``row``."""
    for name in _COLUMNS:
        column = getattr(world, name)
        setattr(world, name, np.append(column, column[row]))
    world.ranges = np.hstack((world.ranges, world.ranges[:, [row]]))
    world.aim()


def _rename(world: World, row: int) -> None:
    del world.row[world.names[row]]
    world.names = PackedNames(world.namespaces, world.namespace, world.ranges)
    world.row[world.names[row]] = row
    world.row[world.names[-1]] = len(world.names) - 1
    world.sizes = world.count_sizes()
