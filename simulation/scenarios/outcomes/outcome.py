"""The outcome of a scenario under one strategy."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.scenarios.scenario import Scenario
from trimtab.arrays import Floats, Ints
from trimtab.reasons import Rule


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run: usages and ranges are fractions, times are cycles; None: no value."""

    moves: int
    """Moves of bundles, without those off brokers that have to be emptied."""
    final_range: float
    """True usage of the hottest less that of the coldest broker after the last cycle."""
    best_range: float
    """The smallest range from the first event on."""
    mean_range: float
    """The mean range over the second half of the cycles."""
    whole_range: float
    """The mean range over all cycles."""
    peak: float
    """The highest usage of a broker in any cycle, after its moves."""
    floor: float
    """The range that the initially heaviest bundle forces if it is not split."""
    plans: int
    """Rounds with moves, without those off brokers that have to be emptied."""
    false_plans: int | None
    """Plans after which the mean range of the next day is no better than without their moves
    (`simulation.scenarios.outcomes.judging`); None if brokers come and go, or bundles do."""
    load_moved: float
    """Share of all load; a bundle that moved twice counts twice."""
    load_ratio: float | None
    """Load moved in units of the least that had to move for the final range; None if load or
    brokers come and go, bundles were merged, or less than one had to move."""
    last_move: int | None
    reaction: int | None
    """Cycles from the first event to the first moves that lower the true range together."""
    straight_back: int
    """Moves to the broker that a bundle left with its last move, within the cool-down."""
    bounces: int
    """Moves to a broker that the bundle left within a day."""
    peak_violations: int
    """Moves after which the destination, with both copies of the bundle counted, is above the
    hottest broker of the start, or after a later event, once lost bundles have been placed."""
    refusals: int
    splits: int
    merges: int
    evacuated: int
    """Bundles taken off brokers that had to be emptied, or were lost."""
    violations_before: int
    """Namespaces that needlessly share a broker with another of their anti-affinity group."""
    violations: int
    """Anti-affinity violations after the last cycle."""
    violations_new: int
    """Violations that plans caused."""
    violations_ended: int | None
    """First cycle after which there were none; None if there never were any, or still are."""
    overloaded_minutes: float
    """Broker-minutes above the scenario's limit."""
    survivability: float
    """Share of the failure domains whose loss leaves no other broker above the limit."""
    worst_loss: float
    """Usage of the hottest broker after the worst such loss."""


@dataclass(frozen=True, slots=True)
class ScenarioCommand:
    """One issued move; rows are those of the scenario's brokers and bundles."""

    cycle: int
    bundle: int
    source: int
    destination: int
    load: float
    """True load of the bundle at that time."""
    drained: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioOutcome:
    """One run, cycle by cycle."""

    scenario: Scenario
    strategy: str
    figures: Figures
    range: Floats
    """(cycles,) range of true usage over the brokers that are up, after the cycle's moves."""
    highest: Floats
    mean: Floats
    """(cycles,) all load divided by the capacity that is up."""
    lowest: Floats
    moves: Ints
    """(cycles,) moves without those off brokers that have to be emptied."""
    refusals: Ints
    splits: Ints
    merges: Ints
    skipped: tuple[Rule | None, ...]
    levels: Floats
    """(cycles / stride, brokers) true usage, NaN while a broker is down."""
    stride: int
    commands: tuple[ScenarioCommand, ...]
