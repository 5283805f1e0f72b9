"""Makes many runs in parallel, and summarises them over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median
from typing import Final

from simulation.scenarios.outcomes.outcome import Figures, ScenarioOutcome
from simulation.scenarios.running import run
from simulation.scenarios.scenario import Scenario
from trimtab.settings import Settings


@dataclass(frozen=True, slots=True)
class Job:
    """One run to make."""

    scenario: Scenario
    settings: Settings


def play(jobs: Sequence[Job], processes: int) -> Iterable[ScenarioOutcome]:
    """Yield the outcomes in the order of the jobs, each once it and the earlier ones exist."""
    if processes <= 1 or len(jobs) <= 1:
        yield from map(_play, jobs)
        return
    # A fork of a process with threads (a JVM's bridge, Kafka's client) may die of a lock it copied.
    fresh = get_context("forkserver")
    with ProcessPoolExecutor(min(processes, len(jobs)), fresh) as pool:
        yield from pool.map(_play, jobs)


def _play(job: Job) -> ScenarioOutcome:
    return run(job.scenario, job.settings)


@dataclass(frozen=True, slots=True)
class Line:
    """One figure in readable form."""

    title: str
    value: Callable[[Figures], float | None]
    shown: Callable[[float], str]
    worst: Callable[[Iterable[float]], float] = max
    always: bool = True
    """Off: left out if it is nothing in every outcome."""


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _points(value: float) -> str:
    return f"{100 * value:.1f}"


def _times(value: float) -> str:
    return f"{value:.2f}"


LINES: Final = (
    Line("moves", lambda f: f.moves, _count),
    Line("range at the end, points", lambda f: f.final_range, _points),
    Line("range, mean of the second half", lambda f: f.mean_range, _points),
    Line("range, mean of all cycles", lambda f: f.whole_range, _points),
    Line("hottest of all cycles, %", lambda f: f.peak, _points),
    Line("plans", lambda f: f.plans, _count),
    Line("false plans", lambda f: f.false_plans, _count),
    Line("what the heaviest bundle leaves", lambda f: f.floor, _points),
    Line("load moved, % of all", lambda f: f.load_moved, _points),
    Line("load moved, times the least", lambda f: f.load_ratio, _times),
    Line("last move, cycle", lambda f: f.last_move, _count),
    Line("first useful moves, cycles after", lambda f: f.reaction, _count),
    Line("moves straight back", lambda f: f.straight_back, _count),
    Line("returns within a day", lambda f: f.bounces, _count),
    Line("moves above the first peak", lambda f: f.peak_violations, _count),
    Line("wishes refused", lambda f: f.refusals, _count, always=False),
    Line("bundles divided", lambda f: f.splits, _count, always=False),
    Line("pairs merged", lambda f: f.merges, _count, always=False),
    Line("bundles evacuated", lambda f: f.evacuated, _count, always=False),
    Line("anti-affinity broken before", lambda f: f.violations_before, _count, always=False),
    Line("anti-affinity broken after", lambda f: f.violations, _count, always=False),
    Line("anti-affinity broken again", lambda f: f.violations_new, _count, always=False),
    Line("anti-affinity kept from cycle", lambda f: f.violations_ended, _count, always=False),
    Line("overloaded broker-minutes", lambda f: f.overloaded_minutes, _count),
    Line("losses survived, % of domains", lambda f: f.survivability, _points, min),
    Line("hottest after the worst loss, %", lambda f: f.worst_loss, _points),
)


def cell(line: Line, figures: Iterable[Figures]) -> str:
    """The median over some seeds, with the worst in brackets if it differs."""
    values = [value for each in figures if (value := line.value(each)) is not None]
    if not values:
        return "-"
    middle, worst = line.shown(median(values)), line.shown(line.worst(values))
    return middle if middle == worst else f"{middle} ({worst})"


def lines(outcomes: Sequence[ScenarioOutcome]) -> list[Line]:
    """The lines that have a value for any of the outcomes."""
    return [line for line in LINES if line.always or any(line.value(o.figures) for o in outcomes)]


def by_strategy(outcomes: Sequence[ScenarioOutcome]) -> dict[str, list[ScenarioOutcome]]:
    """The outcomes of each strategy, in their order."""
    groups: dict[str, list[ScenarioOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.strategy, []).append(outcome)
    return groups
