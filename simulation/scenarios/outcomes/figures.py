"""Figures of a run that are more than sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from simulation.scenarios.outcomes.outcome import ScenarioCommand
from simulation.scenarios.scenario import DAY_S
from simulation.scenarios.world.state import World
from trimtab.arrays import Ints
from trimtab.planner.search.least import least_moved


def returns(commands: Sequence[ScenarioCommand], seconds: float, cooling: float) -> tuple[int, int]:
    """Moves straight back within the cool-down, and all returns within a day.

    A cycle lasts ``seconds``, the cool-down ``cooling`` seconds. Moves off brokers that have
    to be emptied are not counted, but a bundle may return from them.
    """
    paths: dict[int, list[ScenarioCommand]] = defaultdict(list)
    back = anyhow = 0
    for command in commands:
        path = paths[command.bundle]
        left = {
            earlier.source: seconds * (command.cycle - earlier.cycle)
            for earlier in path
            if seconds * (command.cycle - earlier.cycle) <= DAY_S
        }
        if command.destination in left and not command.drained:
            anyhow += 1
            last = path[-1].source == command.destination
            back += last and left[command.destination] <= cooling
        path.append(command)
    return back, anyhow


def load_ratio(world: World, first_owner: Ints, moved: float, reached: float) -> float | None:
    """``moved`` as a multiple of the least load that had to move for the range ``reached``.

    None if loads change, brokers come and go, several resources count, bundles were merged, or the
    least is below an average bundle.
    """
    scenario = world.scenario
    changing = scenario.wave.amplitude or scenario.burst.a_day or scenario.wander.sigma
    changing = changing or scenario.backup.share
    if changing or scenario.kinds or scenario.restart.every or world.heirs or not world.up.all():
        return None
    carried = np.bincount(first_owner[world.origin], world.load, len(world.brokers))
    least = least_moved(carried / world.capacity, world.capacity, reached)
    return moved / least if least >= world.total / scenario.bundles else None


def count_crowded(world: World) -> Ints:
    """(groups x brokers,) namespaces of an anti-affinity group that a broker needlessly has, with
    moves in flight counted as done."""
    n, groups = len(world.brokers), int(world.group.max(initial=-1)) + 1
    if not groups:
        return np.zeros(0, dtype=np.int64)
    rows = np.flatnonzero((world.group[world.namespace] >= 0) & ~world.gone)
    pairs = np.unique(world.namespace[rows] * n + world.intended[rows])
    cells = world.group[pairs // n] * n + pairs % n
    sizes = np.bincount(world.group[world.group >= 0], minlength=groups)
    allowed = -(-sizes // np.count_nonzero(world.up))
    counts = np.bincount(cells, minlength=groups * n)
    excess: Ints = np.maximum(counts - np.repeat(allowed, n), 0)
    return excess
