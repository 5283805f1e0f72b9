"""Puts the same load on another fleet: with more, fewer or different brokers."""

from __future__ import annotations

import numpy as np

from simulation.scenarios.reading import change_scenario
from simulation.scenarios.scenario import Scenario


def with_brokers(scenario: Scenario, more: int) -> Scenario:
    """The scenario with ``more`` brokers (below 0: fewer); raises InvalidScenario."""
    return _carrying(scenario, change_scenario(scenario, {"brokers": scenario.brokers + more}))


def on_hardware(scenario: Scenario, classes: str) -> Scenario:
    """The scenario with brokers of these capacities; raises InvalidScenario."""
    return _carrying(scenario, change_scenario(scenario, {"hardware": classes}))


def remove_domain(scenario: Scenario, cycle: int = 0) -> Scenario:
    """The scenario without one failure domain's brokers from a cycle on; raises InvalidScenario."""
    return change_scenario(
        scenario, {"crash.domains": 1, "crash.cycle": cycle, "crash.returning": 0}
    )


def _carrying(scenario: Scenario, other: Scenario) -> Scenario:
    """``other`` with the load of ``scenario``."""
    return change_scenario(other, {"mean": scenario.mean * _capacity(scenario) / _capacity(other)})


def _capacity(scenario: Scenario) -> float:
    return float(np.resize(np.array(scenario.classes), scenario.brokers).sum())
