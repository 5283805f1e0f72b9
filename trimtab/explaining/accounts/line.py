"""The account of strategies that take the largest bundles off every broker at or above a line.

a broker sheds      if excess >= line and need >= minimum and it lists more than one bundle
need                = traffic * (excess - line + margin)
a bundle goes       if larger ones cover less than need, and the first in any case
Each of these holds up to some line: the lowest of these lines is the bundle's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from trimtab.arrays import THROUGHPUT_IN, Floats
from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.shelves import Shelves
from trimtab.explaining.nearest import closest, lower_setting, raise_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import amount, format_count
from trimtab.reasons import Reason, Rest, Rule
from trimtab.shedding.busiest import MARGIN, traffic
from trimtab.wire.explanation import Nearest


class Line(NamedTuple):
    """The figures that one strategy compares."""

    excess: Floats
    """(n,) usage figure of each broker that is compared with the line."""
    at: float
    path: str
    """The setting that ``at`` is taken from."""
    reason: Reason
    says: Callable[[str, float], str]
    """A sentence on a broker with this name and excess."""
    minimum: float = 0.0
    minimum_path: str = ""
    """The setting that ``minimum`` is taken from, if there is one."""


class LineAccount:
    """The account of one line; rows are those of `Scene.seen`."""

    fleet = None

    def __init__(self, scene: Scene, line: Line) -> None:
        self._scene, self._line, self._view = scene, line, scene.seen
        self._shelves = Shelves(scene.seen)
        self._traffic = traffic(scene.seen.brokers, THROUGHPUT_IN)

    def moved(self, bundle: int) -> Cause:
        """Why the bundle goes, and the nearest line above which it would stay."""
        broker = int(self._view.bundles.owner[bundle])
        highest = min(*self._highest(broker), self._covered(bundle))
        nearest = self._raised(highest, "this bundle stays")
        return Cause(self._line.reason, self._text(broker), nearest, self._figures(broker))

    def stayed(self, bundle: int) -> Cause:
        broker = int(self._view.bundles.owner[bundle])
        if self._view.brokers.listed[broker] <= 1:
            return self._sole(broker)
        highest = self._highest(broker)
        covered = self._covered(bundle)
        if self._line.at > highest[0] or self._line.at > highest[1]:
            return self._rests(broker, min(*highest, covered), "this bundle goes")
        place, larger = self._shelves.larger(bundle, THROUGHPUT_IN)
        why = (
            f"{self._text(broker)}; the {format_count(place, 'larger bundle')} before it carry "
            f"{amount(larger, 'B/s')}, which covers the {amount(self._need(broker), 'B/s')} that "
            "are to leave"
        )
        nearest = self._lowered(min(*highest, covered), "this bundle goes too")
        return Cause(Rest.ENOUGH, why, nearest, self._figures(broker))

    def broker(self, broker: int) -> Cause:
        if self._view.brokers.listed[broker] <= 1:
            return self._sole(broker)
        highest = self._highest(broker)
        if self._line.at > min(highest):
            return self._rests(broker, min(highest), "it sheds")
        nearest = self._raised(min(highest), "it sheds nothing")
        return Cause(self._line.reason, self._text(broker), nearest, self._figures(broker))

    def _highest(self, broker: int) -> tuple[float, float]:
        """The lines up to which the broker exceeds them, and its need is worth a move."""
        excess, carried = float(self._line.excess[broker]), float(self._traffic[broker])
        if not self._line.minimum:
            return excess, math.inf
        worth = excess + MARGIN - self._line.minimum / carried if carried > 0 else -math.inf
        return excess, worth

    def _covered(self, bundle: int) -> float:
        """The line below which larger bundles do not cover the need."""
        broker = int(self._view.bundles.owner[bundle])
        place, larger = self._shelves.larger(bundle, THROUGHPUT_IN)
        if not place:
            return math.inf
        carried = float(self._traffic[broker])
        if carried <= 0:
            return -math.inf
        return float(self._line.excess[broker]) + MARGIN - larger / carried

    def _rests(self, broker: int, highest: float, so_that: str) -> Cause:
        line, why, figures = self._line, self._text(broker), self._figures(broker)
        by_line = self._lowered(highest, so_that)
        if line.at > line.excess[broker]:
            return Cause(Rest.BELOW_LINE, why, by_line, figures)
        need = self._need(broker)
        why = (
            f"{why}, but the {amount(need, 'B/s')} that would leave are less than the "
            f"{amount(line.minimum, 'B/s')} of {line.minimum_path}"
        )
        settings = self._scene.settings
        by_minimum = lower_setting(settings, line.minimum_path, need, "its broker sheds")
        return Cause(Rest.TOO_LITTLE, why, closest(by_line, by_minimum), figures)

    def _sole(self, broker: int) -> Cause:
        name = self._view.brokers.names[broker]
        return Cause(
            Rule.LAST_BUNDLE,
            f"{name} lists {format_count(int(self._view.brokers.listed[broker]), 'bundle')}: "
            "a broker keeps its last",
        )

    def _need(self, broker: int) -> float:
        share = float(self._line.excess[broker]) - self._line.at + MARGIN
        return float(self._traffic[broker]) * share

    def _text(self, broker: int) -> str:
        line = self._line
        return line.says(self._view.brokers.names[broker], float(line.excess[broker]))

    def _figures(self, broker: int) -> dict[str, float]:
        return {"excess": float(self._line.excess[broker]), "line": self._line.at}

    def _lowered(self, highest: float, so_that: str) -> Nearest | None:
        return lower_setting(self._scene.settings, self._line.path, highest, so_that)

    def _raised(self, highest: float, so_that: str) -> Nearest | None:
        return raise_setting(self._scene.settings, self._line.path, highest, so_that)
