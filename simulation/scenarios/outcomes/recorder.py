"""Watches a run and computes its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from simulation.scenarios.outcomes.bounds import floor, survival
from simulation.scenarios.outcomes.figures import count_crowded, load_ratio, returns
from simulation.scenarios.outcomes.judging import Judged, can_judge, count_false_plans
from simulation.scenarios.outcomes.outcome import Figures, ScenarioCommand, ScenarioOutcome
from simulation.scenarios.world.state import World
from trimtab.arrays import Floats, Ints
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.settings import Settings

_PICTURES: Final = 1000
"""About how often in a run the levels of all brokers are kept."""
_ROUNDING: Final = 1e-9


class Recorder:
    """The recorder of one run; call it in every cycle, before and after its moves."""

    def __init__(self, world: World, settings: Settings, first_event: int) -> None:
        cycles, n = world.scenario.cycles, len(world.brokers)
        self._world, self._settings, self._first_event = world, settings, first_event
        self._usage: Floats = np.zeros((3, cycles))
        self._counts: Ints = np.zeros((4, cycles), dtype=np.int64)
        self._skipped: list[Rule | None] = []
        self._stride = max(1, cycles // _PICTURES)
        self._levels: Floats = np.full((-(-cycles // self._stride), n), np.nan)
        self._commands: list[ScenarioCommand] = []
        self._plans: list[Judged] = []
        self._peak = 0.0
        self._peak_violations = self._evacuated = 0
        self._overloaded = 0.0
        self._reaction: int | None = None
        self._first_owner = world.owner
        self._cells: Ints = np.zeros(0, dtype=np.int64)
        self._before = self._new = 0
        self._ended: int | None = None

    def before(self, cycle: int) -> None:
        """Note a cycle after its events and repairs, and before its moves."""
        world = self._world
        if cycle == 0:
            self._first_owner = world.owner
            self._cells = count_crowded(self._world)
            self._before = int(self._cells.sum())
        if cycle == 0 or world.disturbed:
            self._peak = max(self._peak, float(world.levels[world.up].max()))
            world.disturbed = False

    def issued(self, cycle: int, commands: Sequence[ScenarioCommand]) -> None:
        """Note the moves of a cycle, in their order, before they take effect."""
        self._commands += commands
        if commands:
            self._note_plan(cycle, commands)
            self._guard(commands)
            self._react(cycle, commands)

    def _note_plan(self, cycle: int, commands: Sequence[ScenarioCommand]) -> None:
        own = [command for command in commands if not command.drained]
        if own:
            without, after = self._world.intended, self._world.intended.copy()
            after[[command.bundle for command in own]] = [each.destination for each in own]
            self._plans.append(Judged(cycle, without, after))

    def _guard(self, commands: Sequence[ScenarioCommand]) -> None:
        """Check the moves one after another; moves in flight count on both sides."""
        world = self._world
        carried = world.by_kind(world.owner, world.load, world.kind)
        for row, flight in world.flights.items():
            carried[world.kind[row], flight.destination] += world.load[row]
        for command in commands:
            kind, there = world.kind[command.bundle], [command.destination]
            carried[kind, there] += command.load
            busy = world.busy[there]
            level = world.needs.usage(carried[:, there], world.capacity[there], busy)
            self._peak_violations += bool(not command.drained and level[0] > self._peak + _ROUNDING)
            carried[kind, command.source] -= command.load

    def _react(self, cycle: int, commands: Sequence[ScenarioCommand]) -> None:
        if self._reaction is not None or cycle < self._first_event:
            return
        world = self._world
        before, owner = world.planned(), world.intended.copy()
        owner[[command.bundle for command in commands]] = [each.destination for each in commands]
        after = world.usage_of(owner)
        if _spread(after[world.up]) < _spread(before[world.up]) - _ROUNDING:
            self._reaction = cycle - self._first_event

    def after(self, cycle: int, plan: Plan, moves: int) -> None:
        """Note a cycle after its moves, repairs, splits and merges."""
        world = self._world
        levels = world.levels if world.up.all() else world.levels[world.up]
        mean = world.total / world.capacity_up
        self._usage[:, cycle] = levels.min(), mean, levels.max()
        parts = plan.refusals, plan.splits, plan.merges
        self._counts[:, cycle] = moves, *map(len, parts)
        self._skipped.append(plan.skipped)
        self._evacuated += len(plan.moves) - moves + len(plan.repairs)
        if self._usage[2, cycle] > world.scenario.limit:
            over = int(np.count_nonzero(levels > world.scenario.limit))
            self._overloaded += over * world.scenario.seconds / 60
        if cycle % self._stride == 0:
            self._levels[cycle // self._stride, world.up] = levels
        if self._cells.size and (plan.moves or plan.repairs):
            self._watch_groups(cycle)

    def _watch_groups(self, cycle: int) -> None:
        cells = count_crowded(self._world)
        self._new += int(np.maximum(cells - self._cells, 0).sum())
        self._cells = cells
        if self._before and self._ended is None and not cells.any():
            self._ended = cycle

    def outcome(self, strategy: str) -> ScenarioOutcome:
        """The result of the run; call it after the last cycle."""
        lowest, mean, highest = self._usage
        moves, refusals, splits, merges = self._counts
        return ScenarioOutcome(
            scenario=self._world.scenario,
            strategy=strategy,
            figures=self._figures(highest - lowest, float(highest.max())),
            range=highest - lowest,
            highest=highest,
            mean=mean,
            lowest=lowest,
            moves=moves,
            refusals=refusals,
            splits=splits,
            merges=merges,
            skipped=tuple(self._skipped),
            levels=self._levels,
            stride=self._stride,
            commands=tuple(self._commands),
        )

    def _figures(self, spread: Floats, peak: float) -> Figures:
        world, scenario = self._world, self._world.scenario
        own = [command for command in self._commands if not command.drained]
        moved = sum(command.load for command in own)
        straight_back, bounces = returns(
            self._commands, scenario.seconds, self._settings.round.grace_period
        )
        whole = np.bincount(world.origin, world.load, scenario.bundles).astype(np.float64)
        domain = world.domain if scenario.domains else np.arange(len(world.brokers))
        survives = survival(
            world.levels * world.capacity, world.capacity, domain, scenario.limit, world.up
        )
        moves, refusals, splits, merges = self._counts.sum(axis=1).tolist()
        judged = can_judge(scenario) and not (splits or merges)
        return Figures(
            moves=moves,
            final_range=float(spread[-1]),
            best_range=float(spread[self._first_event :].min()),
            mean_range=float(spread[len(spread) // 2 :].mean()),
            whole_range=float(spread.mean()),
            peak=peak,
            plans=len(self._plans),
            false_plans=count_false_plans(scenario, self._plans) if judged else None,
            floor=floor(whole, world.capacity[world.up]),
            load_moved=moved / world.total,
            load_ratio=load_ratio(world, self._first_owner, moved, float(spread[-1])),
            last_move=own[-1].cycle if own else None,
            reaction=self._reaction,
            straight_back=straight_back,
            bounces=bounces,
            peak_violations=self._peak_violations,
            refusals=refusals,
            splits=splits,
            merges=merges,
            evacuated=self._evacuated,
            violations_before=self._before,
            violations=int(self._cells.sum()),
            violations_new=self._new,
            violations_ended=self._ended,
            overloaded_minutes=self._overloaded,
            survivability=survives.share,
            worst_loss=survives.worst,
        )


def _spread(levels: Floats) -> float:
    return float(levels.max() - levels.min())
