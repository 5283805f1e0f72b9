"""The account of ThresholdShedder: how far a broker's average usage exceeds that of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.line import Line, LineAccount
from trimtab.explaining.nearest import closest, switch_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import percent, points
from trimtab.plan import ShedWish
from trimtab.reasons import Reason, Rest
from trimtab.settings import Settings
from trimtab.shedding.threshold import ThresholdHistory, average_usage, mean_of, shed

_BOUNDARY: Final = "threshold.lower_boundary"
_IDLE: Final = Cause(Rest.NO_LOAD, "no broker uses anything")


class ThresholdAccount(LineAccount):
    """The account of the strategy ``threshold``."""

    def __init__(self, scene: Scene) -> None:
        averages = average_usage(scene.seen.brokers, _past(scene), scene.settings)
        self._mean = mean = mean_of(averages)
        limits = scene.settings.threshold
        line = Line(
            excess=averages - mean,
            at=limits.threshold,
            path="threshold.threshold",
            reason=Reason.OVER_AVERAGE,
            says=lambda broker, above: (
                f"{broker} is {points(abs(above))} {'above' if above >= 0 else 'below'} the mean "
                f"of {percent(mean)}, and sheds from {points(limits.threshold)} above it on"
            ),
            minimum=limits.min_throughput,
            minimum_path="threshold.min_throughput",
        )
        super().__init__(scene, line)

    def moved(self, bundle: int) -> Cause:
        owner = int(self._view.bundles.owner[bundle])
        if self._by_boundary:
            return self._for_a_peer(owner, "this bundle stays")
        return self._without_boundary(super().moved(bundle), owner)

    def stayed(self, bundle: int) -> Cause:
        if not self._mean:
            return _IDLE
        cause = super().stayed(bundle)
        if bundle in self._boundary_on:
            switch = switch_setting(self._scene.settings, _BOUNDARY, True, "this bundle goes")
            return cause._replace(nearest=closest(cause.nearest, switch))
        return cause

    def broker(self, broker: int) -> Cause:
        if not self._mean:
            return _IDLE
        if self._by_boundary and self._sheds[0].source == broker:
            return self._for_a_peer(broker, "it sheds nothing")
        return self._without_boundary(super().broker(broker), broker)

    @cached_property
    def _sheds(self) -> Sequence[ShedWish]:
        return shed(self._scene.seen, _past(self._scene), self._scene.settings)[0]

    @property
    def _by_boundary(self) -> bool:
        if not self._scene.settings.threshold.lower_boundary:
            return False
        return bool(self._sheds) and self._sheds[0].reason is Reason.UNDER_AVERAGE_PEER

    def _for_a_peer(self, broker: int, so_that: str) -> Cause:
        names, excess = self._view.brokers.names, self._line.excess
        idlest = int(np.argmin(excess))
        why = (
            f"{names[idlest]} is {points(abs(float(excess[idlest])))} below the mean, and "
            f"{names[broker]} is the busiest"
        )
        off = switch_setting(self._scene.settings, _BOUNDARY, False, so_that)
        return Cause(Reason.UNDER_AVERAGE_PEER, why, off, self._figures(broker))

    def _without_boundary(self, cause: Cause, broker: int) -> Cause:
        """The cause; no nearest setting if the broker would then still shed to an idle one."""
        settings, nearest = self._scene.settings, cause.nearest
        acts = cause.rule is Reason.OVER_AVERAGE and settings.threshold.lower_boundary
        if nearest is None or not acts:
            return cause
        changed = settings.changed({nearest.setting: nearest.then})
        sheds, _ = shed(self._scene.seen, _past(self._scene), changed)
        sources = {each.source for each in sheds}
        return cause._replace(nearest=None) if broker in sources else cause

    @cached_property
    def _boundary_on(self) -> set[int]:
        """Rows of the bundles that would have gone with the lower boundary in use."""
        scene, settings = self._scene, self._scene.settings
        if settings.threshold.lower_boundary or scene.wanted:
            return set()
        bounded = _with_boundary(settings)
        sheds, _ = shed(scene.seen, _past(scene), bounded)
        return {each.bundle for each in sheds}


def _past(scene: Scene) -> ThresholdHistory:
    past: ThresholdHistory = scene.before.histories.of("threshold")
    return past


def _with_boundary(settings: Settings) -> Settings:
    return replace(settings, threshold=replace(settings.threshold, lower_boundary=True))
