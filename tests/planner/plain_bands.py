"""Moves between brokers with several resources, planned the plain way: one move after the other is
compared, again for each band. For small fleets, where every broker and bundle is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search.ground import Band, BoardMove, Ground

SURELY = 1.5


class PlainTrial:
    """A trial for one band."""

    def __init__(self, ground: Ground, takes: Takes, keeps: list[int]) -> None:
        self.ground, self.takes, self.keeps = ground, takes, keeps
        self.used, self.usage = takes.used.copy(), ground.fleet.usage.copy()
        self.tails, self.sway = np.zeros_like(takes.used), np.zeros((2, *takes.used.shape))
        self.steps: list[BoardMove] = []

    def run(self, band: Band, worth: float) -> list[BoardMove]:
        """The moves for the band, in order."""
        aside: set[int] = set()
        again = True
        while True:
            off = {b: self.off(b, band) for b in self.ground.brokers.tolist() if b not in aside}
            worst = max(off, key=lambda broker: off[broker], default=-1)
            if worst < 0 or off[worst] <= worth:
                if not again or not self.steps:
                    return self.steps
                aside, again = set(), False
                continue
            best, step = worth, None
            for each in self.moves(worst, band):
                gain = self.gain(each, band)
                if gain > best:
                    best, step = gain, each
            if step is None:
                aside.add(worst)
            else:
                self.move(step)
                aside -= {step.source, step.destination}

    def off(self, broker: int, band: Band) -> float:
        """How far the broker is outside the band; one that may not receive is never too low."""
        above = float(self.usage[broker]) - band.high
        receives = broker in self.ground.receivers
        return max(above, band.low - float(self.usage[broker])) if receives else above

    def moves(self, worst: int, band: Band) -> Iterator[BoardMove]:
        """All moves off a broker above the band, or to one below it."""
        if self.usage[worst] > band.high:
            for row in self.held(worst):
                for to in self.ground.receivers.tolist():
                    if to != worst:
                        yield BoardMove(row, worst, to)
        else:
            for giver in self.ground.brokers.tolist():
                if giver != worst:
                    for row in self.held(giver):
                        yield BoardMove(row, giver, worst)

    def held(self, broker: int) -> list[int]:
        """What the broker may give of what it began with."""
        gone = {step.bundle for step in self.steps}
        start, end = self.ground.ends[broker], self.ground.ends[broker + 1]
        rows = [row for row in self.ground.order[start:end].tolist() if row not in gone]
        return rows if len(rows) > self.keeps[broker] else []

    def gain(self, step: BoardMove, band: Band) -> float:
        """How much nearer to the band the two brokers come; none if the other gets too full."""
        row, source, to = step
        takes, scale = self.takes, self.takes.scale
        need, doubt = takes.need[:, row], takes.doubt[:, row]
        surely = np.maximum(need - SURELY * doubt, 0.0)
        left = ((self.used[:, source] - surely) * scale[:, source]).max()
        least = ((self.used[:, source] - need - SURELY * doubt) * scale[:, source]).max()
        tail = np.sqrt(self.tails[:, to] + takes.tail[:, row] ** 2)
        sway = np.maximum((self.sway[:, :, to] + takes.sway[:, :, row]).max(axis=0), 0.0)
        most = ((self.used[:, to] + need + sway + tail) * scale[:, to]).max()
        some = ((self.used[:, to] + surely) * scale[:, to]).max()
        if most > max(band.high, self.usage[source]):
            return -np.inf
        before = outside(self.usage[source], self.usage[source], band)
        before += outside(self.usage[to], self.usage[to], band)
        return before - outside(least, left, band) - outside(some, most, band)

    def move(self, step: BoardMove) -> None:
        """Make the move."""
        row, source, to = step
        self.used[:, source] -= self.takes.need[:, row]
        self.used[:, to] += self.takes.need[:, row]
        self.tails[:, to] += self.takes.tail[:, row] ** 2
        self.sway[:, :, to] += self.takes.sway[:, :, row]
        for broker in (source, to):
            self.usage[broker] = (self.used[:, broker] * self.takes.scale[:, broker]).max()
        self.steps.append(step)

    def needed(self) -> tuple[BoardMove, ...]:
        """The moves, smallest first, without those that the range does not need."""
        takes, steps = self.takes, list(self.steps)
        low, high = self.ground.extremes(self.usage)

        def size(step: BoardMove) -> float:
            return float((takes.need[:, step.bundle] * takes.scale[:, step.source]).max())

        for step in sorted(self.steps, key=lambda step: (size(step), step)):
            need, (_, source, to) = takes.need[:, step.bundle], step
            back, gone = self.used[:, source] + need, self.used[:, to] - need
            up, down = back * takes.scale[:, source], gone * takes.scale[:, to]
            if up.max() <= high and down.max() >= low:
                self.used[:, source], self.used[:, to] = back, gone
                steps.remove(step)
        return tuple(steps)


def outside(low: float, high: float, band: Band) -> float:
    """How far a broker of usage ``low`` to ``high`` is outside the band."""
    return float(max(high - band.high, band.low - low, 0.0))


def plan_plainly(
    ground: Ground, takes: Takes, keeps: list[int], bands: Sequence[Band], worth: float
) -> list[tuple[BoardMove, ...]]:
    """The plan for each band."""
    plans = []
    for band in bands:
        trial = PlainTrial(ground, takes, keeps)
        trial.run(band, worth)
        plans.append(trial.needed())
    return plans
