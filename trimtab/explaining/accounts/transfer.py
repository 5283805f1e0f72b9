"""The account of TransferShedder: the deviation of usage, and how long it was too large."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.nearest import lower_setting, raise_setting, switch_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import format_count, points, seconds
from trimtab.model import namespace_of
from trimtab.reasons import Reason, Rest
from trimtab.settings import Settings
from trimtab.shedding.balance import young
from trimtab.shedding.top_bundles import TopBundles
from trimtab.shedding.transfer import ShedOutcome, Skip, judge_balance
from trimtab.wire.explanation import Nearest

_TARGET: Final = "transfer.target_deviation"


class TransferAccount:
    """The account of the strategy ``transfer``."""

    fleet = None

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view, self._limits = scene, scene.seen, scene.settings.transfer
        self._found = self._judged(scene.settings)
        self._sources = {shed.source for shed in self._found.sheds}

    def _judged(self, settings: Settings) -> ShedOutcome:
        past = self._scene.before.histories.of("transfer")
        return judge_balance(self._view, past, settings, TopBundles(self._view, settings).of)

    def moved(self, bundle: int) -> Cause:
        name = self._view.bundles.names[bundle]
        move = self._scene.moves.get(name)
        reason = move.reason if move is not None else Reason.OVERLOADED
        return self._acted._replace(rule=reason)

    def stayed(self, bundle: int) -> Cause:
        broker = int(self._view.bundles.owner[bundle])
        if not self._found.sheds:
            return self._rests
        name = self._view.brokers.names[broker]
        if self._is_spared(bundle):
            why = f"{self._text}; it is under a policy, and such bundles are left where they are"
            switch = switch_setting(
                self._scene.settings,
                "transfer.with_policies",
                True,
                "its policy no longer keeps it",
            )
            return Cause(Rest.UNDER_POLICY, why, switch, self._figures)
        if broker in self._sources:
            why = f"{self._text}; {name} sheds, and this one is not among what fits of its largest"
            return Cause(Rest.NOT_CHOSEN, why, None, self._figures)
        return self._not_shedding(name)

    def broker(self, broker: int) -> Cause:
        if not self._found.sheds:
            return self._rests
        if broker in self._sources:
            return self._acted
        return self._not_shedding(self._view.brokers.names[broker])

    def _is_spared(self, bundle: int) -> bool:
        namespace = namespace_of(self._view.bundles.names[bundle])
        return not self._limits.with_policies and self._view.policies.binds(namespace)

    def _not_shedding(self, name: str) -> Cause:
        why = (
            f"{self._text}; {format_count(len(self._sources), 'broker')} shed this round, at most "
            f"{self._limits.max_brokers} may, and {name} is not among the busiest"
        )
        return Cause(Rest.NOT_BUSIEST, why, None, self._figures)

    @cached_property
    def _acted(self) -> Cause:
        limit = self._deviation
        so_that = "the round leaves all as it is"
        nearest = raise_setting(self._scene.settings, _TARGET, limit, so_that)
        # A broker with almost no load is a reason by itself.
        if nearest is not None and self._with(nearest).sheds:
            nearest = None
        return Cause(Reason.OVERLOADED, self._text, nearest, self._figures)

    def _is_broken(self, nearest: Nearest) -> bool:
        found = self._with(nearest)
        return bool(found.hits or found.sheds)

    def _with(self, nearest: Nearest) -> ShedOutcome:
        return self._judged(self._scene.settings.changed({nearest.setting: nearest.then}))

    @cached_property
    def _rests(self) -> Cause:
        found, settings = self._found, self._scene.settings
        if found.skip is Skip.HIT_COUNT and found.hits:
            nearest = lower_setting(settings, "transfer.hits", found.hits, "it acts in this round")
            why = (
                f"{self._text}; out of balance for {format_count(found.hits, 'round')} in a row, "
                f"it acts after {settings.transfer.hits}"
            )
            return Cause(Rest.HITS, why, nearest, self._figures)
        if found.skip is Skip.HIT_COUNT:
            limit, so_that = self._deviation, "a hit counts"
            nearest = lower_setting(settings, _TARGET, limit, so_that)
            if nearest is not None and not self._is_broken(nearest):
                nearest = None
            return Cause(Rest.IN_RANGE, self._text, nearest, self._figures)
        if found.mean is None:
            return self._waiting
        return Cause(
            Rest.NO_GAIN,
            f"{self._text}, but no bundle of the busiest brokers may leave and fits ({found.skip})",
            figures=self._figures,
        )

    @property
    def _waiting(self) -> Cause:
        settings, brokers = self._scene.settings, self._view.brokers
        if self._found.skip is Skip.COOL_DOWN:
            rest, name = min(zip(self._rest_s.tolist(), brokers.names, strict=True))
            nearest = lower_setting(
                settings, "transfer.delay", float(self._rest_s.min()), "it is asked"
            )
            why = (
                f"{name} shed {seconds(rest)} before its report, and {seconds(self._limits.delay)} "
                "must lie in between"
            )
            return Cause(Rest.WAITING, why, self._if_asked(nearest))
        age_s = (self._view.now_ms - brokers.reported_ms[brokers.reported_ms > 0]) / 1000
        if self._found.skip is Skip.OUTDATED:
            nearest = raise_setting(
                settings, "transfer.report_life", float(age_s.min()), "it is asked"
            )
            why = f"no report is younger than {seconds(self._limits.report_life)}"
            return Cause(Rest.WAITING, why, self._if_asked(nearest))
        return Cause(Rest.WAITING, "a broker has not reported yet")

    def _if_asked(self, nearest: Nearest | None) -> Nearest | None:
        """The setting; None if the strategy would then wait for something else."""
        return None if nearest is None or self._with(nearest).mean is None else nearest

    @property
    def _rest_s(self) -> np.ndarray:
        """(n,) seconds from a broker's shedding to its report; infinite if it delays no round."""
        brokers = self._view.brokers
        counts = young(self._view, self._scene.settings) & (brokers.relieved_ms > 0)
        rest: np.ndarray = np.where(
            counts, (brokers.reported_ms - brokers.relieved_ms) / 1000, np.inf
        )
        return rest

    @property
    def _deviation(self) -> float:
        """The deviation of usage; 0 if rounding leaves none to compute."""
        found = self._found.deviation or 0.0
        return 0.0 if math.isnan(found) else found

    @property
    def _text(self) -> str:
        return (
            f"usage deviates by {points(self._deviation)}, "
            f"{points(self._limits.target_deviation)} are accepted"
        )

    @cached_property
    def _figures(self) -> dict[str, float]:
        return {
            "deviation": self._deviation,
            "target": self._limits.target_deviation,
            "hits": self._found.hits,
        }
