"""Splits a bundle on its broker, and merges two neighbours on one broker.

split: the upper half of its range gets a row of its own
  topics = halved, the larger part stays below
  load   = halved with the range; the load of one topic stays below, and once that topic is alone
           there, all the rest is above
merge: the lower one's row takes everything, the upper one's stays empty and is not shown any more
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulation.scenarios.world.state import World
from trimtab.names import PackedNames

_COLUMNS: Final = (
    "base",
    "solid",
    "topics",
    "origin",
    "kind",
    "owner",
    "arrived_ms",
    "namespace",
    "gone",
)


def divide(world: World, row: int) -> tuple[str, ...]:
    """Split a bundle; returns its children's names, none if there is nothing to split."""
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
    half = world.base.size - 1
    del world.row[world.names[row]]
    world.ranges[1, row] = world.ranges[0, half] = low + (high - low) // 2
    world.halved.append((row, half))
    _renamed(world, (row, half))
    return world.names[row], world.names[half]


def merge(world: World, lower: int, upper: int) -> None:
    """Merge two neighbours that one broker has into one bundle."""
    for row in (lower, upper):
        del world.row[world.names[row]]
    for name in ("base", "solid", "topics", "ranges", "gone"):
        setattr(world, name, getattr(world, name).copy())
    for column in (world.base, world.solid, world.topics):
        column[lower] += column[upper]
        column[upper] = 0
    world.ranges[1, lower] = world.ranges[1, upper]
    world.gone[upper], world.heirs[upper] = True, lower
    world.joined.append((lower, upper))
    _renamed(world, (lower,))


def _append(world: World, row: int) -> None:
    """Append a copy of ``row`` to each column."""
    for name in _COLUMNS:
        column = getattr(world, name)
        setattr(world, name, np.append(column, column[row]))
    world.ranges = np.hstack((world.ranges, world.ranges[:, [row]]))
    world.aim()


def _renamed(world: World, rows: tuple[int, ...]) -> None:
    """Register the ``rows`` under their new ranges; their brokers have not seen them."""
    world.names = PackedNames(world.namespaces, world.namespace, world.ranges)
    world.row.update((world.names[row], row) for row in rows)
    world.sizes = world.count_sizes()
    world.unseen += rows
    world.forget_loads()
