"""Judges plans by the true load: the range of usage after a plan, compared to without it.

false = the mean range of the day after the plan is no better than if its moves had not been made,
        with everything else where it was, and no later moves in either case
The loads of that day are the scenario's: they do not depend on what strategies do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulation.scenarios.scenario import DAY_S, Scenario
from simulation.scenarios.world.events import Events
from simulation.scenarios.world.state import World
from trimtab.arrays import Floats, Ints

_EVERY_S: Final = 600.0
"""How often the range is looked at."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A plan to judge: the owner (broker row) of each of m bundles without and with its moves."""

    cycle: int
    without: Ints
    after: Ints


def can_judge(scenario: Scenario) -> bool:
    """Whether brokers and bundles stay the same, so that both courses can be followed."""
    comes = scenario.start.brokers and (scenario.start.joining or scenario.start.every)
    return not (comes or scenario.restart.every or scenario.crash.brokers or scenario.crash.domains)


def count_false_plans(scenario: Scenario, plans: Sequence[Judged]) -> int:
    """How many of the plans were false."""
    if not plans:
        return 0
    world, events = World(scenario), Events(scenario)
    day, stride = _cycles(scenario, DAY_S), _cycles(scenario, _EVERY_S)
    gained = np.zeros(len(plans))
    for cycle in range(-scenario.warm_up, plans[-1].cycle + day):
        events.begin(world, cycle, round(1000 * scenario.seconds * cycle))
        if cycle < plans[0].cycle or cycle % stride:
            continue
        for place, plan in enumerate(plans):
            if plan.cycle <= cycle < plan.cycle + day:
                gained[place] += _range(world, plan.without) - _range(world, plan.after)
    return int(np.count_nonzero(gained <= _ROUNDING))


def _cycles(scenario: Scenario, seconds: float) -> int:
    return max(1, round(seconds / scenario.seconds))


def _range(world: World, owner: Ints) -> float:
    usage: Floats = world.usage_of(owner)[world.up]
    return float(usage.max() - usage.min())
