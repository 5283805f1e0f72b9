"""The curve of `planner.target`: what a narrower range costs in moves, beside another strategy.

points = runs of trimtab under each target, and one of the other strategy, whose range is its own
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulation.scenarios.comparisons.comparing import LINES, Job, Line, cell
from simulation.scenarios.outcomes.outcome import Figures, ScenarioOutcome
from simulation.scenarios.running import strategy
from simulation.scenarios.scenario import Scenario
from trimtab.settings import IN_WORDS, Settings
from trimtab.settings.words import OTHER

TARGETS: Final = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
"""Targets of the curve: those that have a word, and some between and beyond."""
BESIDE: Final = "avg"
"""AvgShedder, whose range follows from its own thresholds."""
TARGET_NAMES: Final = ("planner.target", "planner.aim")
"""The settings that a curve changes."""
_TRIMTAB: Final = "trimtab"
_TARGET, _AIM = TARGET_NAMES
_SHOWN: Final[Mapping[str, str]] = {
    "moves": "moves",
    "range, mean of all cycles": "mean range",
    "range at the end, points": "range at the end",
    "hottest of all cycles, %": "peak, %",
    "plans": "plans",
}
"""Titles of `comparing.LINES`, each with its column's."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one target, or the other strategy (``target`` is None), made of every seed."""

    strategy: str
    target: float | None
    outcomes: Sequence[ScenarioOutcome]

    @property
    def aim(self) -> str:
        """The word for the target; empty if there is none."""
        word = IN_WORDS[_AIM].word_of(self.target)
        return "" if word == OTHER else word

    @property
    def figures(self) -> list[Figures]:
        """The figures of each seed."""
        return [outcome.figures for outcome in self.outcomes]


def jobs_of(scenarios: Sequence[Scenario], settings: Settings) -> list[Job]:
    """The runs of a curve, in the order that `points_of` expects."""
    return [Job(scenario, each) for each in _settings(settings) for scenario in scenarios]


def points_of(outcomes: Sequence[ScenarioOutcome]) -> list[Point]:
    """The points of a curve, the narrowest target first, the other strategy last."""
    seeds = len(outcomes) // (len(TARGETS) + 1)
    runs = [outcomes[at : at + seeds] for at in range(0, len(outcomes), seeds)]
    planned = [Point(_TRIMTAB, *each) for each in zip(TARGETS, runs[:-1], strict=True)]
    return [*planned, Point(BESIDE, None, runs[-1])]


def columns() -> list[str]:
    """The column headings of `rows`."""
    return [*TARGET_NAMES, *_SHOWN.values()]


def rows(points: Sequence[Point]) -> Iterator[list[str]]:
    """The cells of each point: medians over the seeds, the worst in brackets."""
    of: dict[str, Line] = {line.title: line for line in LINES}
    for point in points:
        name = point.strategy if point.target is None else f"{point.target:g}"
        yield [name, point.aim, *(cell(of[title], point.figures) for title in _SHOWN)]


def _settings(settings: Settings) -> Iterator[Settings]:
    planned = strategy(_TRIMTAB, settings)
    yield from (planned.changed({_TARGET: target}) for target in TARGETS)
    yield strategy(BESIDE, settings)
