"""Scenarios: a fleet as columns and the round that balances it, 1000 times faster than real time.

outcome = run(load("scale-out", seed=3, noise=0.2), strategy("avg"))
outcome.figures.moves, outcome.figures.final_range
"""

from simulation.scenarios.outcomes.outcome import Figures, ScenarioOutcome
from simulation.scenarios.reading import InvalidScenario, change_scenario, library, load
from simulation.scenarios.running import run, strategy
from simulation.scenarios.scenario import Scenario

__all__ = [
    "Figures",
    "InvalidScenario",
    "Scenario",
    "ScenarioOutcome",
    "change_scenario",
    "library",
    "load",
    "run",
    "strategy",
]
