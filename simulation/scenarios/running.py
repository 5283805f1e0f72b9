"""Runs a scenario under a strategy: in every cycle the round decides, and its plan is carried out.

each cycle:
  events happen; moves that have lasted long enough land
  every broker reports; the round decides on the view of the reports
  its repairs are done at once; then its moves start, and its splits and merges are done
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from simulation.scenarios.outcomes.outcome import ScenarioCommand, ScenarioOutcome
from simulation.scenarios.outcomes.recorder import Recorder
from simulation.scenarios.reports.losses import trouble_of
from simulation.scenarios.reports.view import CLUSTER, Reports
from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.events import Events
from simulation.scenarios.world.reshaping import divide, merge
from simulation.scenarios.world.state import World
from trimtab.plan import Plan
from trimtab.reasons import Reason
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.shedding import DEFAULTS
from trimtab.state.round_state import RoundState
from trimtab.view import View

EPOCH_MS: Final = 1_800_000_000_000

PLACEMENTS: Final[Mapping[str, str]] = {
    "threshold": "least-long-term-rate",
    "overload": "least-long-term-rate",
    "uniform": "least-long-term-rate",
    "avg": "avg",
    "transfer": "least-average-usage",
    "trimtab": "least-predicted-usage",
}
NOTHING: Final = "none"
"""In place of a strategy: nothing is balanced, and what must move is placed as ``avg`` does."""
"""The default placement of each shedder."""

_UNOBSERVED: Final = {"round.enabled": False, "split.enabled": False, "ledger.enabled": False}
"""Settings of a warm-up from which the strategies learn nothing."""


def strategy(name: str, settings: Settings | None = None) -> Settings:
    """``settings`` with the strategy ``shedding`` or ``shedding+placement``, or ``none``.

    Raises InvalidSettings.
    """
    shedding, _, placement = name.partition("+")
    if shedding == NOTHING:
        return strategy("avg", settings).changed({"round.enabled": False})
    chosen = {
        "round.shedding": shedding,
        "round.placement": placement or PLACEMENTS.get(shedding, "least-long-term-rate"),
    }
    return (settings or DEFAULTS).changed(chosen)


def name_of(settings: Settings) -> str:
    """The shortest text that `strategy` accepts for these settings."""
    if not settings.round.enabled:
        return NOTHING
    shedding, placement = settings.round.shedding, settings.round.placement
    return shedding if placement == PLACEMENTS.get(shedding) else f"{shedding}+{placement}"


def run(scenario: Scenario, settings: Settings) -> ScenarioOutcome:
    """Run the scenario; the same scenario and settings give the same outcome."""
    run = Run(scenario, settings)
    for cycle in range(-scenario.warm_up, scenario.cycles):
        run.step(cycle)
    return run.recorder.outcome(name_of(settings))


class Run:
    """One scenario under one strategy, in progress."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self._scenario = scenario
        own: dict[str, object] = {"round.interval": scenario.seconds}
        if not scenario.split:
            own["split.enabled"] = False
        if not scenario.evenly:
            own["placement.distribute_evenly"] = False
        self.settings = settings.changed(own)
        self._warm_up = self.settings.changed(
            {"round.observe_only": True} if scenario.observed else _UNOBSERVED
        )
        self.world = World(scenario)
        self._events = Events(scenario)
        self._reports = Reports(self.world, self.settings.round)
        first = min((c for c in self._events.cycles if 0 <= c < scenario.cycles), default=0)
        self.recorder = Recorder(self.world, self.settings, first)
        self._flights = np.random.default_rng([scenario.seed, 4])
        self.state = RoundState()

    def step(self, cycle: int) -> Plan:
        """Run one cycle; returns its plan, which is not carried out in the warm-up."""
        now_ms = EPOCH_MS + round(1000 * self._scenario.seconds * cycle)
        self.world.land(now_ms)
        self._events.begin(self.world, cycle, now_ms)
        settings = self._warm_up if cycle < 0 else self.settings
        view = self._reports.view(now_ms)
        silent = int(self._reports.silent().sum())
        view = replace(view, trouble=trouble_of(self.world, settings, now_ms, silent))
        plan = self._decide(view, settings, now_ms)
        if cycle >= 0:
            self._obey(plan, cycle, now_ms)
        return plan

    def _decide(self, view: View, settings: Settings, now_ms: int) -> Plan:
        draws = self.state.draws(CLUSTER)
        plan, self.state = decide(view, self.state, settings, now_ms, draws)
        return plan

    def _obey(self, plan: Plan, cycle: int, now_ms: int) -> None:
        world, recorder = self.world, self.recorder
        self._repair(plan, now_ms)
        recorder.before(cycle)
        commands = self._commands(plan, cycle)
        recorder.issued(cycle, commands)
        if commands:
            delay = self._scenario.delay
            seconds = self._flights.uniform(delay.flight_low, delay.flight_high, len(commands))
            flight_ms = np.rint(1000 * seconds).astype(np.int64).tolist()
            moves = {command.bundle: command.destination for command in commands}
            world.issue(moves, now_ms, flight_ms)
        self._divide(plan, now_ms)
        for joined in plan.merges:
            merge(world, world.row[joined.bundle], world.row[joined.neighbour])
        recorder.after(cycle, plan, sum(not command.drained for command in commands))

    def _repair(self, plan: Plan, now_ms: int) -> None:
        world = self.world
        given = {r.bundle: r.broker for r in plan.repairs if r.broker is not None}
        if given:
            rows = {world.row[bundle]: world.broker_row[b] for bundle, b in given.items()}
            world.give(rows, now_ms)

    def _commands(self, plan: Plan, cycle: int) -> list[ScenarioCommand]:
        world = self.world
        if not plan.moves:
            return []
        load = world.load
        return [
            ScenarioCommand(
                cycle=cycle,
                bundle=(row := world.row[move.bundle]),
                source=world.broker_row[move.source],
                destination=world.broker_row[move.destination],
                load=float(load[row]),
                drained=move.reason is Reason.DRAINED,
            )
            for move in plan.moves
        ]

    def _divide(self, plan: Plan, now_ms: int) -> None:
        halves = [
            half
            for split in plan.splits
            for half in divide(self.world, self.world.row[split.bundle])
        ]
        if halves and self.settings.split.unload_children:
            waiting = self.state.halves | dict.fromkeys(halves, now_ms)
            self.state = replace(self.state, halves=waiting)
