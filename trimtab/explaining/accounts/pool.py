"""The account of trimtab's own planner for one pool: the brokers that some bundles may be on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.pool_nearest import flip_range
from trimtab.explaining.prediction import Prediction, follow_history
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import format_count, percent, points, seconds
from trimtab.load_model.wariness import find_tolerated_range
from trimtab.planner.constraints import Draft
from trimtab.planner.fleet_changes import awaited_until, is_waiting, settings_now
from trimtab.planner.giants import forcing, is_awaited, splits_giants
from trimtab.planner.outlook import Outlook
from trimtab.planner.trigger import reach
from trimtab.reasons import Reason, Rest
from trimtab.wire.explanation import Nearest


class PoolAccount:
    """The account of pool number ``at`` of an outlook; rows are those of `Scene.seen`."""

    def __init__(self, scene: Scene, outlook: Outlook, at: int) -> None:
        self._scene, self._view = scene, scene.seen
        self._outlook, self._at = outlook, at
        self._history = follow_history(scene)
        self._settings = settings_now(scene.settings, self._history, scene.now_ms)
        self.prospect = outlook.prospects[at]

    def traded(self, broker: str) -> tuple[int, int]:
        """How many bundles the plan takes off a broker, and how many it gives to that broker."""
        scene = self._scene
        return len(scene.given.get(broker, ())), len(scene.gotten.get(broker, ()))

    @cached_property
    def at_rest(self) -> Cause | None:
        """Why all bundles stayed in place; None if the planner acted."""
        pair = self.prospect.pair
        if self._has_moves:
            return None
        if self._awaits:
            return Cause(
                Rest.AWAITED,
                f"{self._apart}, and a bundle that forces that on any broker must be split first: "
                "until then nothing is moved away from it",
                figures=self._figures,
            )
        if pair.range <= pair.accepted:
            return self._accepted
        if self.prospect.beyond <= 0:
            return self._forced
        if self._was_refused:
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
        """Why the planner acted."""
        return Cause(
            Reason.OUT_OF_RANGE,
            f"{self._apart}, {points(self.prospect.pair.accepted)} are accepted{self._event}"
            f"{self._missed}",
            self._flip("the round leaves all as it is", rests=True),
            self._figures,
        )

    def not_chosen(self, owner: str) -> Cause:
        """The cause for a bundle that the plan does not use."""
        (given, gotten), others = self.traded(owner), len(self._scene.balancing)
        does = f"{format_count(others, 'other bundle')} bring the range down"
        if not others:
            does = "what it wants instead was refused"
        why = (
            f"the plan does without it: {does}; {owner} gives {given} and gets {gotten}. Before, "
            f"{self._apart}"
        )
        return Cause(Rest.NOT_CHOSEN, why, figures=self._figures)

    def left(self, broker: int) -> Cause:
        """The cause for a broker that the plan does not use."""
        least, most = self._left
        usage = float(self._outlook.fleet.usage[broker])
        away = max(usage - least, most - usage)
        if away <= self.prospect.pair.accepted:
            why = (
                f"the plan does not need it: it leaves brokers at {percent(least)} to "
                f"{percent(most)}, and this one is at {percent(usage)}"
            )
            return Cause(Rest.UNNEEDED, why, figures=self._figures)
        why = (
            f"the plan brings it no nearer: at {percent(usage)} it stays {points(away)} from "
            "another"
        )
        if away <= self.prospect.forced:
            return Cause(Rest.ONE_BUNDLE, f"{why}, and {self._force}", figures=self._figures)
        why += " because no bundle that may move fits"
        return Cause(Rest.NO_GAIN, why, figures=self._figures)

    @property
    def _accepted(self) -> Cause:
        settings, pair = self._settings, self.prospect.pair
        target, unrest = settings.planner.target, self._outlook.unrest
        if self._waits and pair.range > self._scene.settings.planner.target:
            return self._awaited
        nearest = self._flip("the round looks for a plan", rests=False)
        if pair.range <= target:
            why = f"{self._apart}, within the {points(target)} of planner.target{self._passing}"
            return Cause(Rest.IN_RANGE, why, nearest, self._figures)
        why = (
            f"{self._apart}, more than the {points(target)} of planner.target; up to "
            f"{points(pair.accepted)} are left alone"
        )
        if pair.accepted <= find_tolerated_range(settings, unrest):
            why += f" because there were {unrest:.1f} recent plans, and a load that swings is not "
            return Cause(Rest.SWINGING, f"{why}chased", nearest, self._figures)
        if self._outlook.fleet.limit:
            limit = percent(self._outlook.fleet.limit)
            why += f" because leaps of this fleet pass, and no broker is that far above {limit}"
        else:
            chance = f"chance (deviation {points(pair.deviation)})"
            hidden = float(self._outlook.fleet.hidden[pair.hot])
            if hidden:
                chance += f", or a burst that was not seen to begin ({points(hidden)}),"
            why += f" because so far {chance} may bring them"
        why += self._passing
        return Cause(Rest.WITHIN_NOISE, why, nearest, self._figures)

    @property
    def _waits(self) -> bool:
        """Whether the planner waits for brokers that are about to come or go."""
        return is_waiting(self._history, self._scene.now_ms)

    @property
    def _awaited(self) -> Cause:
        until = awaited_until(self._history)
        accepted = points(self.prospect.pair.accepted)
        why = (
            f"{self._apart}; brokers come and go one after another, and what the next one gives "
            f"when it is emptied can fill those that came: up to {accepted} are left alone until "
            f"none has come or gone for another {seconds((until - self._scene.now_ms) / 1000)}"
        )
        return Cause(Rest.CHANGING, why, figures=self._figures, until=until)

    @property
    def _forced(self) -> Cause:
        return Cause(Rest.ONE_BUNDLE, f"{self._apart}, and {self._force}", figures=self._figures)

    @property
    def _force(self) -> str:
        """What prevents any plan."""
        fleet, brokers = self._outlook.fleet, self.prospect.pool.brokers
        sizes = np.where(brokers[fleet.where], fleet.size, 0.0)
        name = f" ({self._view.bundles.names[int(np.argmax(sizes))]})" if sizes.any() else ""
        return (
            f"the largest bundle{name} or what may not move forces {points(self.prospect.floor)} "
            "wherever it is: only splitting it, or a larger broker, would help"
        )

    @cached_property
    def _has_moves(self) -> bool:
        return any(
            move.reason is Reason.OUT_OF_RANGE and move.source in self._names
            for move in self._scene.balancing
        )

    @cached_property
    def _was_refused(self) -> bool:
        """Whether the planner wanted moves in this pool and none was granted."""
        return any(
            refusal.destination is not None and refusal.source in self._names
            for refusal in self._scene.plan.refusals
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of the pool's brokers."""
        names = self._view.brokers.names
        return frozenset(names[row] for row in np.flatnonzero(self.prospect.pool.brokers).tolist())

    @cached_property
    def _left(self) -> tuple[float, float]:
        """The least and the greatest usage of the pool's brokers after the plan."""
        scene = self._scene
        after = Prediction(scene, self._outlook.fleet).after[scene.seen_brokers]
        after = after[self.prospect.pool.brokers]
        return float(after.min()), float(after.max())

    @cached_property
    def _awaits(self) -> bool:
        """Whether a split must come first."""
        settings, found, history = self._settings, self.prospect, self._history
        if not splits_giants(settings):
            return False
        draft = Draft(self._view, self._outlook.fleet, settings)
        giants = forcing(draft, found, history.estimates)
        return is_awaited(draft, giants, found.pair.hot, history)

    def _flip(self, so_that: str, *, rests: bool) -> Nearest | None:
        if self._waits:
            return None
        return flip_range(self._scene, self._outlook, self._at, so_that, rests=rests)

    @cached_property
    def _event(self) -> str:
        """Why there is no allowance for chance, if there is none."""
        if self._outlook.fleet.on_first_reports:
            return ", as noise does not explain so much, large as it may be"
        if not self._outlook.fleet.struck:
            return ""
        struck = format_count(self._outlook.fleet.struck, "bundle")
        return f", whatever chance may do, for {struck} leapt together just now"

    @property
    def _passing(self) -> str:
        """Which bundles and brokers count as before a leap or a fall, if some do."""
        fleet, told = self._outlook.fleet, ""
        if fleet.resting:
            some = format_count(fleet.resting, "namespace")
            told = (
                f"; the load of {some} fell and may come back, so a broker that was nearer to the "
                "mean before counts nearer to it"
            )
        if fleet.passing:
            some = format_count(fleet.passing, "bundle")
            told += f"; {some} that leapt now count as before because most leaps of this fleet pass"
        if fleet.busy:
            some = format_count(fleet.busy, "broker")
            told += (
                f"; {some} with a use that no bundle explains count as before because that may pass"
            )
        if fleet.as_reported:
            some = format_count(fleet.as_reported, "broker")
            told += f"; {some} count as they report, because their traffic says clearly otherwise"
        if self._outlook.unmeasured:
            some = format_count(len(self._outlook.unmeasured), "broker")
            told += (
                f"; {some} took no part, because the limit of a resource that is busy elsewhere is "
                "not reported"
            )
        return told

    @property
    def _missed(self) -> str:
        """Why the plan goes only a part of the way, if it does."""
        fleet, misses = self._outlook.fleet, self._scene.after.histories.trimtab.misses
        if fleet.on_first_reports:
            return (
                "; no bundle has been reported twice yet, so this plan goes "
                f"{percent(fleet.sure)} of the way"
            )
        if not misses:
            return ""
        return (
            f"; {format_count(misses, 'recent plan')} missed the forecast, so this one goes "
            f"{percent(reach(misses))} of the way"
        )

    @property
    def _apart(self) -> str:
        pair, names = self.prospect.pair, self._view.brokers.names
        usage, plan = self._outlook.fleet.usage, self._scene.plan
        urgent = plan.repairs or any(move.reason is Reason.DRAINED for move in plan.moves)
        return (
            f"{names[pair.hot]} at {percent(float(usage[pair.hot]))} and {names[pair.cold]} at "
            f"{percent(float(usage[pair.cold]))} are {points(pair.range)} apart"
            + (" with this round's drains and repairs" if urgent else "")
        )

    @cached_property
    def _figures(self) -> dict[str, float]:
        pair = self.prospect.pair
        return {
            "range": pair.range,
            "accepted": pair.accepted,
            "target": self._settings.planner.target,
            "deviation": pair.deviation,
            "floor": self.prospect.floor,
            "unrest": self._outlook.unrest,
            "passing": self._outlook.fleet.passing,
            "busy": self._outlook.fleet.busy,
            "as_reported": self._outlook.fleet.as_reported,
            "unmeasured": len(self._outlook.unmeasured),
            "misses": self._scene.after.histories.trimtab.misses,
            "leapt": self._outlook.fleet.struck,
        }
