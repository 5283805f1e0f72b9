"""The account of UniformLoadShedder: how much more the busiest broker carries than the idlest."""

from __future__ import annotations

from functools import cached_property

from trimtab.arrays import RATE_IN, THROUGHPUT_IN
from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.shelves import Shelves
from trimtab.explaining.nearest import closest, lower_setting, raise_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import amount
from trimtab.reasons import Reason, Rest, Rule
from trimtab.shedding.uniform import Excess, excess_of, extremes, shed
from trimtab.wire.explanation import Nearest


class UniformAccount:
    """The account of the strategy ``uniform``."""

    fleet = None

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view = scene, scene.seen
        self._shelves = Shelves(scene.seen)

    def moved(self, bundle: int) -> Cause:  # noqa: ARG002 - one broker sheds
        return self._whole

    def stayed(self, bundle: int) -> Cause:
        cause = self.broker(int(self._view.bundles.owner[bundle]))
        excess = self._excess
        if not isinstance(cause.rule, Reason) or excess is None:
            return cause
        unit = "messages/s" if excess.measure == RATE_IN else "B/s"
        size, share = self._shelves.size(bundle, excess.measure), self._left(excess)
        rule = Rest.TOO_LARGE if size > share + 1000 else Rest.ENOUGH
        other = "more than" if rule is Rest.TOO_LARGE else "and larger ones fill"
        why = f"{cause.why}; it carries {amount(size, unit)}, {other} the {amount(share, unit)}"
        return Cause(rule, f"{why} that are to leave", None, cause.figures)

    def broker(self, broker: int) -> Cause:
        whole, excess = self._whole, self._excess
        if excess is None or excess.source == broker:
            return whole
        name = self._view.brokers.names[excess.source]
        why = f"bundles leave {name} alone, the busiest: {whole.why}"
        return Cause(Rest.NOT_BUSIEST, why, None, whole.figures)

    @cached_property
    def _excess(self) -> Excess | None:
        return excess_of(self._view, self._scene.settings) if self._view.brokers.names else None

    @cached_property
    def _whole(self) -> Cause:
        excess, settings = self._excess, self._scene.settings
        if excess is None:
            nearest = closest(*self._lines(lower=True))
            return Cause(Rest.BELOW_LINE, self._text, nearest, self._figures)
        if self._view.brokers.listed[excess.source] <= 1:
            name = self._view.brokers.names[excess.source]
            return Cause(Rule.LAST_BUNDLE, f"{self._text}; {name} keeps its last bundle")
        left, gap = self._left(excess), excess.gap
        if left >= excess.minimum:
            by_rate, by_bytes = self._lines(lower=False)
            nearest = by_rate if excess.measure == RATE_IN else by_bytes
            # If messages are no longer a reason, bytes may be.
            if nearest is not None and self._sheds_with(nearest):
                nearest = None
            return Cause(excess.reason, self._text, nearest, self._figures)
        path = "unload.min_rate" if excess.measure == RATE_IN else "unload.min_throughput"
        unit = "messages/s" if excess.measure == RATE_IN else "B/s"
        so_that = "the busiest broker sheds"
        # The strategy compares the integer part of what leaves.
        nearest = closest(
            lower_setting(settings, path, left, so_that),
            raise_setting(settings, "unload.max_share", (int(excess.minimum) + 1) / gap, so_that),
        )
        why = (
            f"{self._text}; but the {amount(left, unit)} that would leave are less than the "
            f"{amount(excess.minimum, unit)} of {path}"
        )
        return Cause(Rest.TOO_LITTLE, why, nearest, self._figures)

    def _sheds_with(self, nearest: Nearest) -> bool:
        settings = self._scene.settings.changed({nearest.setting: nearest.then})
        return bool(shed(self._view, None, settings)[0])

    def _left(self, excess: Excess) -> int:
        return int(excess.gap * self._scene.settings.unload.max_share)

    @cached_property
    def _figures(self) -> dict[str, float]:
        _, least, most = extremes(self._view.brokers, RATE_IN)
        _, low, high = extremes(self._view.brokers, THROUGHPUT_IN)
        return {"rate_difference": (most - least) * 100 / least, "throughput_ratio": high / low}

    @property
    def _text(self) -> str:
        figures, limits = self._figures, self._scene.settings.uniform
        return (
            f"the most messages are {max(figures['rate_difference'], 0):.0f} % above the least "
            f"({limits.rate_difference:.4g} % accepted), the most bytes "
            f"{figures['throughput_ratio']:.1f} times the least ({limits.throughput_ratio:.4g})"
        )

    def _lines(self, *, lower: bool) -> tuple[Nearest | None, Nearest | None]:
        """The compared settings, just past the values found; None for one that is not compared."""
        settings, figures = self._scene.settings, self._figures
        past = lower_setting if lower else raise_setting
        so_that = "the busiest broker sheds" if lower else "the round leaves all as it is"
        found = []
        for name, line in figures.items():
            at = getattr(settings.uniform, name)
            compared = at > 0 and line > 0
            nearest = past(settings, f"uniform.{name}", line, so_that) if compared else None
            found.append(nearest if nearest is not None and nearest.then else None)
        return found[0], found[1]
