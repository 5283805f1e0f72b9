"""The account of AvgShedder: a pair's gap, and how often in a row it was too wide."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from trimtab.arrays import RATE_IN, THROUGHPUT_IN
from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.shelves import Shelves
from trimtab.explaining.nearest import closest, lower_setting, raise_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import amount, percent
from trimtab.load import usage
from trimtab.reasons import Reason, Rest
from trimtab.shedding.busiest import traffic
from trimtab.wire.explanation import Nearest


class _Pair(NamedTuple):
    """Rows of two brokers, and the difference of their usage in points."""

    busy: int
    idle: int
    gap: float


class AvgAccount:
    """The account of the strategy ``avg``."""

    fleet = None

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view, self._limits = scene, scene.seen, scene.settings.avg
        self._usage = usage(scene.seen.brokers.resources, scene.settings.weights)
        order = np.argsort(self._usage * 100, kind="stable")
        half = (len(order) + 1) // 2
        idle, busy = order[:half].tolist(), order[::-1][:half].tolist()
        self._pair_of: dict[int, _Pair] = {}
        for low, high in zip(idle, busy, strict=True):
            pair = _Pair(high, low, float(100 * self._usage[high] - 100 * self._usage[low]))
            self._pair_of[low] = self._pair_of[high] = pair
        self._shelves = Shelves(scene.seen)

    def moved(self, bundle: int) -> Cause:
        pair = self._pair_of[int(self._view.bundles.owner[bundle])]
        move = self._scene.moves[self._view.bundles.names[bundle]]
        return Cause(move.reason, self._text(pair), self._keeping(pair), self._figures(pair))

    def stayed(self, bundle: int) -> Cause:
        broker = int(self._view.bundles.owner[bundle])
        cause = self.broker(broker)
        if not isinstance(cause.rule, Reason):
            return cause
        pair = self._pair_of[broker]
        measure, gap = self._measured(pair)
        size, share = self._shelves.size(bundle, measure), self._scene.settings.unload.max_share
        unit = "messages/s" if measure == RATE_IN else "B/s"
        if size > gap * share:
            why = (
                f"{self._text(pair)}; it carries {amount(size, unit)}, more than the "
                f"{amount(gap * share, unit)} that are to leave"
            )
            return Cause(Rest.TOO_LARGE, why, None, cause.figures)
        why = f"{self._text(pair)}; larger bundles fill the {amount(gap * share, unit)} that leave"
        return Cause(Rest.ENOUGH, why, None, cause.figures)

    def broker(self, broker: int) -> Cause:
        pair = self._pair_of[broker]
        figures = self._figures(pair)
        if broker != pair.busy:
            names = self._view.brokers.names
            why = f"{names[broker]} is the idler of its pair with {names[pair.busy]}: it only gets"
            return Cause(Rest.NOT_BUSIEST, why, None, figures)
        if pair.gap < self._limits.low_threshold:
            return Cause(Rest.BELOW_LINE, self._text(pair), self._narrower(pair), figures)
        if not self._acted(pair):
            return self._counting(pair)
        if not self._is_worth(pair):
            return self._too_little(pair)
        reason = Reason.HIGH_PAIR if self._is_high(pair) else Reason.LOW_PAIR
        return Cause(reason, self._text(pair), self._keeping(pair), figures)

    def _keeping(self, pair: _Pair) -> Nearest | None:
        """The setting with which a pair that acted would have been left alone."""
        settings, so_that = self._scene.settings, "its pair is left alone"
        low, high = self._hits(pair)
        found = [raise_setting(settings, "avg.low_threshold", pair.gap, so_that)]
        if not self._is_low(pair):
            found.append(raise_setting(settings, "avg.high_hits", high, so_that))
            if self._limits.high_hits:
                found.append(raise_setting(settings, "avg.high_threshold", pair.gap, so_that))
        if not self._is_high(pair):
            found.append(raise_setting(settings, "avg.low_hits", low, so_that))
        return closest(*found)

    def _narrower(self, pair: _Pair) -> Nearest | None:
        wanted = self._limits.low_hits
        hits = self._past_hits(pair)[0] + 1
        so_that = self._sheds_then(pair)
        if hits < wanted:
            so_that = f"a hit counts, {hits} of {wanted}"
        return lower_setting(self._scene.settings, "avg.low_threshold", pair.gap, so_that)

    def _counting(self, pair: _Pair) -> Cause:
        settings, limits = self._scene.settings, self._limits
        low, high = self._hits(pair)
        why = f"{self._text(pair)}: so far for {low} rounds in a row of {limits.low_hits}"
        if high:
            why += f", and beyond {limits.high_threshold:.4g} for {high} of {limits.high_hits}"
        so_that = self._sheds_then(pair)
        nearest = closest(
            lower_setting(settings, "avg.low_hits", low + 1, so_that),
            lower_setting(settings, "avg.high_hits", high + 1, so_that) if high else None,
        )
        return Cause(Rest.HITS, why, nearest, self._figures(pair))

    def _too_little(self, pair: _Pair) -> Cause:
        settings = self._scene.settings
        share = settings.unload.max_share
        gaps = {measure: self._gap(pair, measure) for measure in (RATE_IN, THROUGHPUT_IN)}
        enough = [self._least(m) / gap for m, gap in gaps.items() if gap > 0]
        so_that = "its pair sheds"
        nearest = closest(
            lower_setting(settings, "unload.min_rate", gaps[RATE_IN] * share, so_that),
            lower_setting(settings, "unload.min_throughput", gaps[THROUGHPUT_IN] * share, so_that),
            raise_setting(settings, "unload.max_share", min(enough), so_that) if enough else None,
        )
        why = (
            f"{self._text(pair)}, but they are only {amount(gaps[RATE_IN], 'messages/s')} and "
            f"{amount(gaps[THROUGHPUT_IN], 'B/s')} apart: {percent(share)} of that is not worth it"
        )
        return Cause(Rest.TOO_LITTLE, why, nearest, self._figures(pair))

    def _sheds_then(self, pair: _Pair) -> str:
        return "its pair sheds" if self._is_worth(pair) else "its hits are enough"

    def _is_worth(self, pair: _Pair) -> bool:
        measure, gap = self._measured(pair)
        return gap * self._scene.settings.unload.max_share > self._least(measure)

    def _measured(self, pair: _Pair) -> tuple[int, float]:
        """The measure compared, and the pair's difference in it."""
        rate = self._gap(pair, RATE_IN)
        if rate * self._scene.settings.unload.max_share > self._least(RATE_IN):
            return RATE_IN, rate
        return THROUGHPUT_IN, self._gap(pair, THROUGHPUT_IN)

    def _gap(self, pair: _Pair, measure: int) -> float:
        carried = traffic(self._view.brokers, measure)
        return float(carried[pair.busy] - carried[pair.idle])

    def _least(self, measure: int) -> float:
        unload = self._scene.settings.unload
        return unload.min_rate if measure == RATE_IN else unload.min_throughput

    def _acted(self, pair: _Pair) -> bool:
        return self._is_low(pair) or self._is_high(pair)

    def _is_low(self, pair: _Pair) -> bool:
        return self._hits(pair)[0] >= self._limits.low_hits

    def _is_high(self, pair: _Pair) -> bool:
        return self._hits(pair)[1] >= self._limits.high_hits

    def _hits(self, pair: _Pair) -> tuple[int, int]:
        """The low and the high hits, the greater of both brokers', this round included."""
        low, high = self._past_hits(pair)
        # A broker that is its own peer counts twice.
        more = 2 if pair.busy == pair.idle else 1
        low = low + more if pair.gap >= self._limits.low_threshold else 0
        return low, high + more if pair.gap >= self._limits.high_threshold else 0

    def _past_hits(self, pair: _Pair) -> tuple[int, int]:
        low, high = self._past
        sides = [pair.busy, pair.idle]
        return int(low[sides].max()), int(high[sides].max())

    @cached_property
    def _past(self) -> tuple[np.ndarray, np.ndarray]:
        history, names = self._scene.before.histories.of("avg"), self._view.brokers.names
        return history.low.column(names), history.high.column(names)

    def _text(self, pair: _Pair) -> str:
        names = self._view.brokers.names
        return (
            f"{names[pair.busy]} at {percent(float(self._usage[pair.busy]))} and "
            f"{names[pair.idle]} at {percent(float(self._usage[pair.idle]))} are a pair, "
            f"{pair.gap:.1f} points apart (too far is from {self._limits.low_threshold:.4g} on)"
        )

    def _figures(self, pair: _Pair) -> dict[str, float]:
        low, high = self._hits(pair)
        return {"gap": pair.gap, "line": self._limits.low_threshold, "low": low, "high": high}
