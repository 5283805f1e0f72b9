"""What came of a scenario under one strategy."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.scenarios.scenario import Scenario
from trimtab.arrays import Floats, Ints
from trimtab.reasons import Rule


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run. Usages and ranges are fractions, times are cycles; None: does not apply."""

    moves: int
    """Of bundles, those off brokers to be emptied apart."""
    final_range: float
    """True usage of the hottest less that of the coldest broker after the last cycle."""
    best_range: float
    """From the first event on."""
    mean_range: float
    """Over the second half of the cycles."""
    floor: float
    """What the heaviest bundle of the start leaves of a range if it is not divided."""
    load_moved: float
    """Of all load; a bundle that moved twice counts twice."""
    load_ratio: float | None
    """Load moved in units of the least that had to move for the final range; None where load or
    brokers come and go, bundles were merged, or less than one had to move."""
    last_move: int | None
    reaction: int | None
    """Cycles from the first event to the first moves that lower the true range together."""
    straight_back: int
    """Moves to where a bundle came from with its last move, within the cool-down."""
    bounces: int
    """Moves to a broker that the bundle left within a day."""
    peak_violations: int
    """Moves after which the destination, the bundle still on its source too, stands above the
    hottest broker of the start, or after a later event, when lost bundles have been placed."""
    refusals: int
    splits: int
    merges: int
    evacuated: int
    """Bundles taken off brokers that were to be emptied, or were lost."""
    violations_before: int
    """Namespaces that share a broker with another of their anti-affinity group, beyond need."""
    violations: int
    """The same after the last cycle."""
    violations_new: int
    """Those that plans brought about."""
    violations_ended: int | None
    """First cycle after which there were none; None where there were none, or still are."""
    overloaded_minutes: float
    """Broker-minutes above the scenario's limit."""
    survivability: float
    """Share of the failure domains whose loss leaves no other broker above the limit."""
    worst_loss: float
    """Usage of the hottest broker after the worst such loss."""


@dataclass(frozen=True, slots=True)
class Command:
    """One move as it was issued; rows are those of the scenario's brokers and bundles."""

    cycle: int
    bundle: int
    source: int
    destination: int
    load: float
    """True load of the bundle then."""
    drained: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioOutcome:
    """One run, cycle by cycle."""

    scenario: Scenario
    strategy: str
    figures: Figures
    range: Floats
    """(cycles,) of true usage over the brokers that are up, after the cycle's moves."""
    highest: Floats
    mean: Floats
    """(cycles,) all load over the capacity that is up."""
    lowest: Floats
    moves: Ints
    """(cycles,) without those off brokers that are to be emptied."""
    refusals: Ints
    splits: Ints
    merges: Ints
    skipped: tuple[Rule | None, ...]
    levels: Floats
    """(cycles / stride, brokers) true usage, NaN while a broker is down."""
    stride: int
    commands: tuple[Command, ...]
