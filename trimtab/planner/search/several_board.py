"""A fleet with several resources on which a plan is tried: what brokers use, and where it moved."""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Ints
from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search.candidates import Candidates
from trimtab.planner.search.ground import BoardMove, Ground

_SURELY: Final = 1.5
"""Deviations by which the gain of a bundle's source counts as smaller. Lower: bundles whose needs
are unknown move without effect; higher: only bundles whose needs are known well move."""


class SeveralBoard:
    """One trial, mutable. A bundle moves only once in a plan."""

    def __init__(self, ground: Ground, takes: Takes) -> None:
        self._ground, self._takes = ground, takes
        self.used = takes.used.copy()
        """(r, n) what brokers use of each resource."""
        self.usage = ground.fleet.usage.copy()
        """(n,) the same of each broker's busiest one, as a fraction."""
        self.steps: list[BoardMove] = []
        self._tails = np.zeros_like(takes.used)
        """Sums of the squares of what came may take more at worst."""
        self._sway = np.zeros((2, *takes.used.shape))
        """Sums of what came takes more if only messages cost, or only bytes."""
        self._left: dict[int, Ints] = {}

    def held(self, broker: int) -> Ints:
        """Rows of the broker's bundles that may move and have not."""
        ground = self._ground
        start = ground.order[ground.ends[broker] : ground.ends[broker + 1]]
        return self._left.get(broker, start)

    def move(self, step: BoardMove) -> None:
        """Count the bundle as moved."""
        row, source, to = step
        takes = self._takes
        self.used[:, source] -= takes.need[:, row]
        self.used[:, to] += takes.need[:, row]
        self._tails[:, to] += takes.tail[:, row] ** 2
        self._sway[:, :, to] += takes.sway[:, :, row]
        for broker in (source, to):
            self.usage[broker] = (self.used[:, broker] * takes.scale[:, broker]).max()
        held = self.held(source)
        self._left[source] = held[held != row]
        self.steps.append(step)

    def compare(self, sources: Ints, rows: Ints, to: Ints) -> Candidates:
        """The moves of (k,) rows, each from its source to any of (t,) brokers."""
        takes, scale = self._takes, self._takes.scale
        need, doubt = takes.need[:, rows], takes.doubt[:, rows]
        surely = np.maximum(need - _SURELY * doubt, 0.0)
        used, each = self.used[:, sources], scale[:, sources]
        left = ((used - surely) * each).max(axis=0)
        least = ((used - need - _SURELY * doubt) * each).max(axis=0)
        there, each = self.used[:, None, to], scale[:, None, to]
        tail = np.sqrt(self._tails[:, None, to] + (takes.tail[:, rows] ** 2)[:, :, None])
        sway = (self._sway[:, :, None, to] + takes.sway[:, :, rows, None]).max(axis=0)
        most = ((there + need[:, :, None] + np.maximum(sway, 0.0) + tail) * each).max(axis=0)
        some = ((there + surely[:, :, None]) * each).max(axis=0)
        before = (self.usage[sources], self.usage[to])
        return Candidates(rows, sources, to, before, (least, left), (some, most))

    def needed(self) -> tuple[BoardMove, ...]:
        """The steps, without those that can be undone and leave the range as it is. Ends the
        trial."""
        takes, steps = self._takes, dict.fromkeys(self.steps)
        low, high = self._ground.extremes(self.usage)
        size = [float((takes.need[:, s.bundle] * takes.scale[:, s.source]).max()) for s in steps]
        for _, step in sorted(zip(size, self.steps, strict=True)):
            need = takes.need[:, step.bundle]
            back = self.used[:, step.source] + need
            gone = self.used[:, step.destination] - need
            up = float((back * takes.scale[:, step.source]).max())
            down = float((gone * takes.scale[:, step.destination]).max())
            if up <= high and down >= low:
                self.used[:, step.source], self.used[:, step.destination] = back, gone
                del steps[step]
        return tuple(steps)
