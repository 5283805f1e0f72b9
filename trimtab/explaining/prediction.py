"""Brokers' usage before and after the plan, and what a bundle adds to each.

The figures come from the planner's model, which every strategy's moves are reviewed against later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.explaining.scene import Scene
from trimtab.load import usage
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.traffic_cost import cost_of, traffic_of
from trimtab.reasons import ORDERED

_Step = tuple[int | None, int, int]
"""Rows of source, destination and bundle; no source where no broker serves it."""


class Prediction:
    """A round's prediction by rows of `Scene.shown`; ``fleet``, if known, by rows of `Scene.seen`.

    Brokers that the strategy did not see have their reported usage.
    """

    def __init__(self, scene: Scene, fleet: Fleet | None = None) -> None:
        self._scene, history = scene, follow_history(scene)
        if fleet is None:
            fleet, history = observe_fleet(scene.seen, history, scene.settings)
        self._fleet = fleet
        self._cost = cost_of(scene.shown.brokers, history) if scene.broker_rows else np.zeros(0)

    def added(self, bundle: int | None) -> Floats:
        """(n,) usage that a bundle adds to each broker; None: an average bundle."""
        takes, added = self._fleet.takes, self._typical * self._gain
        if bundle is None:
            return added
        added, place = self._load(bundle) * self._gain, self._scene.place(bundle)
        if takes is not None and place >= 0:
            there = ((takes.used + takes.need[:, [place]]) * takes.scale).max(axis=0)
            added[self._scene.seen_brokers] = there - takes.usage
        return added

    def _load(self, bundle: int) -> float:
        """The bundle's share of the fleet's traffic."""
        place = self._scene.place(bundle)
        if place >= 0:
            return float(self._fleet.size[place])
        return float(self.sizes(np.array([bundle]))[0]) / self._traffic

    @cached_property
    def _gain(self) -> Floats:
        """(n,) as `Fleet.gain`, also for brokers that the strategy did not see."""
        gain = self._traffic * self._cost
        gain[self._scene.seen_brokers] = self._fleet.gain
        return gain

    @cached_property
    def _traffic(self) -> float:
        """The fleet's traffic in bytes/s; 1 if there is none."""
        costs = self._cost[self._scene.seen_brokers]
        known = (costs > 0) & (self._fleet.gain > 0)
        return float(np.median(self._fleet.gain[known] / costs[known])) if known.any() else 1.0

    def sizes(self, bundles: Ints) -> Floats:
        """(k,) short-term bytes/s of bundle rows, with messages converted to bytes."""
        return traffic_of(self._scene.shown.bundles.short[:, bundles])

    @cached_property
    def _typical(self) -> float:
        size = self._fleet.size
        return float(size.mean()) if size.size else 0.0

    @cached_property
    def usage(self) -> Floats:
        """(n,) usage as the strategy saw it: with everything in flight or urgent landed."""
        scene = self._scene
        predicted = usage(scene.shown.brokers.resources, scene.settings.weights)
        # Brokers that the strategy did not see have their reports' usage, with drained bundles.
        for source, _, bundle in self._urgent:
            if source is not None:
                load = self._load(bundle)
                predicted[source] = max(0.0, predicted[source] - load * self._gain[source])
        predicted[scene.seen_brokers] = self._fleet.usage
        return predicted

    @cached_property
    def before(self) -> Floats:
        """(n,) usage without the urgent changes."""
        return self._moved(self.usage, -1.0, self._urgent)

    @cached_property
    def after(self) -> Floats:
        """(n,) usage with the whole plan."""
        rows = self._scene.broker_rows
        moves = [
            (rows[move.source], rows[move.destination], row)
            for move in self._scene.plan.moves
            if move.reason not in ORDERED
            and (row := self._scene.bundle_row(move.bundle)) is not None
        ]
        return self._moved(self.usage, 1.0, moves)

    def range(self, of: Floats) -> float:
        """The range of ``of`` over the available brokers."""
        taking = of[self._scene.seen_brokers]
        return float(np.ptp(taking)) if taking.size else 0.0

    @cached_property
    def _urgent(self) -> list[_Step]:
        """The bundles that operators want moved, or that are given a new owner."""
        scene, plan = self._scene, self._scene.plan
        given = [
            (scene.broker_rows[move.source], move.destination, move.bundle)
            for move in plan.moves
            if move.reason in ORDERED
        ]
        assigned = [(None, each.broker, each.bundle) for each in plan.repairs if each.broker]
        return [
            (source, scene.broker_rows[to], row)
            for source, to, bundle in [*given, *assigned]
            if (row := scene.bundle_row(bundle)) is not None and to in scene.broker_rows
        ]

    def _moved(self, start: Floats, sign: float, steps: Sequence[_Step]) -> Floats:
        """``start``, which is `usage`, after the steps; where bundles take several resources, each
        broker is as busy as its busiest."""
        result, takes, seen = start.copy(), self._fleet.takes, self._scene.seen_brokers
        used = np.zeros((0, 0)) if takes is None else takes.used.copy()
        column_of = {} if takes is None else {row: at for at, row in enumerate(seen.tolist())}
        for source, to, bundle in steps:
            place = self._scene.place(bundle)
            for broker, part in ((source, -sign), (to, sign)):
                column = column_of.get(broker)
                if broker is not None and takes is not None and column is not None and place >= 0:
                    used[:, column] += part * takes.need[:, place]
                    result[broker] = (used[:, column] * takes.scale[:, column]).max()
                elif broker is not None:
                    result[broker] += part * self._load(bundle) * self._gain[broker]
        return result


def follow_history(scene: Scene) -> PlannerHistory:
    """The planner's history as the strategy received it, with this round's reports counted."""
    before, after = scene.before.histories.trimtab, scene.after.histories.trimtab
    unrest = after.unrest
    if after.planned_ms != before.planned_ms:
        # A plan made in this round has counted itself; before it nothing counted if a broker came.
        unrest = before.unrest if unrest > after.counted else 0.0
    return replace(
        after,
        unrest=unrest,
        planned_ms=before.planned_ms,
        sent=before.sent,
        giants=before.giants,
        looked_ms=before.looked_ms,
    )


def history_before(scene: Scene) -> PlannerHistory:
    """The planner's history before this round's reports, with the corrections of costs and the
    splits that this round added."""
    before, after = scene.before.histories.trimtab, scene.after.histories.trimtab
    return replace(before, corrections=after.corrections, divided=after.divided)
