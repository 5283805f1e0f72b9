"""Of trimtab's own planner: the range it found, what it accepts, and what its plan leaves.

Each pool of brokers is planned by itself: a bundle's pool decides on it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.nearest import closest, sought
from trimtab.explaining.prediction import followed
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import counted, percent, points
from trimtab.planner.constraints import Draft
from trimtab.planner.fleet import Fleet
from trimtab.planner.giants import awaited, forcing
from trimtab.planner.outlook import Prospect, looked
from trimtab.reasons import Reason, Rest
from trimtab.settings import Settings
from trimtab.wire.explanation import Nearest


class TrimtabAccount:
    """Of the planner."""

    fleet: Fleet

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view = scene, scene.seen
        self._outlook, _ = looked(scene.seen, followed(scene), scene.settings)
        self.fleet = self._outlook.fleet
        self._accounts = [_PoolAccount(self, at) for at in range(len(self._outlook.prospects))]

    def moved(self, bundle: int) -> Cause:
        pool = self._pool_of_bundle(bundle)
        return self._unready if pool is None else pool.acted

    def stayed(self, bundle: int) -> Cause:
        pool = self._pool_of_bundle(bundle)
        if pool is None:
            return self._unready
        whole = pool.at_rest
        if whole is not None:
            return whole
        if self.fleet.size[bundle] <= 0:
            return Cause(Rest.NO_LOAD, "it carries no load: to move it would gain nothing")
        owner = self._view.brokers.names[int(self._view.bundles.owner[bundle])]
        return pool.not_chosen(owner)

    def broker(self, broker: int) -> Cause:
        pools = [each for each in self._accounts if each.prospect.pool.brokers[broker]]
        if not pools:
            return self._unready
        pool = max(pools, key=lambda each: each.prospect.beyond)
        whole = pool.at_rest
        if whole is not None:
            return whole
        name = self._view.brokers.names[broker]
        if self._traded(name) == (0, 0):
            return pool.unneeded(float(self.fleet.usage[broker]))
        return pool.acted

    @cached_property
    def _unready(self) -> Cause:
        if not self.fleet.ready:
            return Cause(
                Rest.LEARNING,
                "no bundle has been reported twice yet: the planner cannot tell load from noise",
            )
        return Cause(
            Rest.RESERVED, "fewer than two brokers may have it, or none of them may get more"
        )

    def _pool_of_bundle(self, bundle: int) -> _PoolAccount | None:
        for each in self._accounts:
            pool = each.prospect.pool
            if pool.free[bundle] or (pool.grouped is not None and pool.grouped[bundle]):
                return each
        return None

    def _traded(self, broker: str) -> tuple[int, int]:
        """How many bundles the plan takes off a broker and gives it."""
        scene = self._scene
        return len(scene.given.get(broker, ())), len(scene.gotten.get(broker, ()))


class _PoolAccount:
    """Of the brokers that some bundles may be on."""

    def __init__(self, whole: TrimtabAccount, at: int) -> None:
        self._whole, self._at = whole, at
        self._scene, self._view = whole._scene, whole._view

    @property
    def prospect(self) -> Prospect:
        return self._whole._outlook.prospects[self._at]

    @cached_property
    def at_rest(self) -> Cause | None:
        """What left all of them as they are; None where the planner acted."""
        pair, scene = self.prospect.pair, self._scene
        if self._has_moves:
            return None
        if self._awaits:
            return Cause(
                Rest.AWAITED,
                f"{self._apart}, and a bundle that forces that wherever it is is to be divided "
                "first: until then nothing is moved away from it",
                figures=self._figures,
            )
        if pair.range <= pair.accepted:
            return self._accepted
        if self.prospect.beyond <= 0:
            return self._forced
        if scene.wanted and scene.refusals:
            return None
        return Cause(
            Rest.NO_GAIN,
            f"{self._apart}, more than the {points(pair.accepted)} accepted, and no plan was found "
            "that narrows it enough to be worth its moves: bundles are too large, rest after a "
            "move, or are their broker's last",
            figures=self._figures,
        )

    @cached_property
    def acted(self) -> Cause:
        """Why it planned."""
        return Cause(
            Reason.OUT_OF_RANGE,
            f"{self._apart}, {points(self.prospect.pair.accepted)} are accepted",
            self._flip("the round leaves all as it is", rests=True),
            self._figures,
        )

    def not_chosen(self, owner: str) -> Cause:
        """Of a bundle that the plan does without."""
        given, gotten = self._whole._traded(owner)
        why = (
            f"the plan does without it: {counted(len(self._scene.balancing), 'other bundle')} "
            f"bring the range down; {owner} gives {given} and gets {gotten}. Before, {self._apart}"
        )
        return Cause(Rest.NOT_CHOSEN, why, figures=self._figures)

    def unneeded(self, usage: float) -> Cause:
        """Of a broker that the plan does without."""
        why = f"the plan has no need of it: at {percent(usage)} it is where the others are brought"
        return Cause(Rest.UNNEEDED, why, figures=self._figures)

    @property
    def _accepted(self) -> Cause:
        pair, target = self.prospect.pair, self._scene.settings.planner.target
        nearest = self._flip("the round looks for a plan", rests=False)
        if pair.range <= target:
            why = f"{self._apart}, within the {points(target)} of planner.target"
            return Cause(Rest.IN_RANGE, why, nearest, self._figures)
        why = (
            f"{self._apart}, more than the {points(target)} of planner.target; up to "
            f"{points(pair.accepted)} are left alone, for so far chance (deviation "
            f"{points(pair.deviation)}) may bring them"
        )
        if self._whole._outlook.unrest > 1:
            why += f", and there were {self._whole._outlook.unrest:.1f} plans of late"
        return Cause(Rest.WITHIN_NOISE, why, nearest, self._figures)

    @property
    def _forced(self) -> Cause:
        largest = int(np.argmax(self._whole.fleet.size))
        why = (
            f"{self._apart}, and the largest bundle ({self._view.bundles.names[largest]}) or what "
            f"may not move forces {points(self.prospect.floor)} wherever it is: only to divide it, "
            "or a larger broker, would help"
        )
        return Cause(Rest.ONE_BUNDLE, why, figures=self._figures)

    @cached_property
    def _has_moves(self) -> bool:
        brokers, names = self.prospect.pool.brokers, self._view.brokers.names
        here = {names[row] for row in np.flatnonzero(brokers).tolist()}
        return any(
            move.reason is Reason.OUT_OF_RANGE and move.source in here
            for move in self._scene.balancing
        )

    @cached_property
    def _awaits(self) -> bool:
        """Whether a division comes first."""
        settings, fleet, found = self._scene.settings, self._whole.fleet, self.prospect
        if not (settings.split.enabled and settings.split.trigger == "planned"):
            return False
        history, giants = followed(self._scene), list[int]()
        draft = Draft(self._view, fleet, settings)
        if found.floor > settings.planner.target:
            giants = forcing(draft, found.ground, history.estimates)
        return awaited(draft, giants, found.pair.hot, history)

    def _flip(self, so_that: str, *, rests: bool) -> Nearest | None:
        outlook, at = self._whole._outlook, self._at

        def changes(settings: Settings) -> bool:
            return (outlook.under(settings).prospects[at].beyond <= 0) is rests

        settings = self._scene.settings
        return closest(
            sought(settings, "planner.target", rests, changes, so_that),
            sought(settings, "planner.quiet", rests, changes, so_that),
            sought(settings, "planner.false_moves", not rests, changes, so_that),
        )

    @property
    def _apart(self) -> str:
        pair, names = self.prospect.pair, self._view.brokers.names
        usage = self._whole.fleet.usage
        return (
            f"{names[pair.hot]} at {percent(float(usage[pair.hot]))} and {names[pair.cold]} at "
            f"{percent(float(usage[pair.cold]))} are {points(pair.range)} apart"
        )

    @cached_property
    def _figures(self) -> dict[str, float]:
        pair = self.prospect.pair
        return {
            "range": pair.range,
            "accepted": pair.accepted,
            "target": self._scene.settings.planner.target,
            "deviation": pair.deviation,
            "floor": self.prospect.floor,
            "unrest": self._whole._outlook.unrest,
        }
