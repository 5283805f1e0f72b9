"""Moves between brokers with several resources: each broker is as busy as its busiest one.

for each band, until nothing helps:
  take the broker furthest outside the band: if it is above, each of its bundles may go to one of
  the brokers with most room; if it is below, the bundles of the hottest brokers may come
  take the move that brings the two brokers nearest to the band together, if it gains enough
  (`trimtab.planner.search.candidates`)
then undo the moves that the range does not need

All bands begin with the same brokers. So until a trial has moved something, it shares what it finds
out about a broker's moves with the others: where no band helps, as a few large bundles fit nowhere,
the search is a single look at each broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search.candidates import Candidates
from trimtab.planner.search.ground import Band, BoardMove, Ground
from trimtab.planner.search.levels import positions
from trimtab.planner.search.several_board import SeveralBoard

_POSITIONS: Final = 15
"""Positions of each band. Lower: a plan with fewer moves is missed; higher: effort. Of 18 plans for
wide targets that took 80 moves with 5, one took 9 moves where 2 would do; with 15 they take 62."""
_FEWEST: Final = 5
"""Those of a large fleet, whose plans have many moves whatever the position. Lower: more moves;
higher: a plan for a thousand brokers takes more than seconds."""
_TRIED: Final = 1500
"""Brokers times positions, in between. The same trade-off."""
_WIDTHS: Final = (1.0, 0.6, 2.0)
"""Widths of bands, in targets. More: more effort where the target is out of reach."""
_OTHERS: Final = 8
"""Brokers tried at the other end of a move, by usage and by the resource that matters. Lower: room
is missed; higher: effort."""
_BUNDLES: Final = 96
"""Bundles of a broker that are tried, largest first."""
_WORTH: Final = 0.1
"""What a move must gain, in targets. Lower: moves for little; higher: the range stays wider."""
_AGAIN: Final = 1
"""How often all brokers that no move helped are tried again."""
_SHARED: Final = 1000
"""Brokers whose first moves are shared by the trials: up to 26 kB each. Lower: a large fleet is
looked at again for each band; higher: memory."""


def try_bands(
    ground: Ground, takes: Takes, keeps: list[int], target: float, effort: int
) -> Iterator[list[tuple[BoardMove, ...]]]:
    """Plans for bands of several positions, for one width after the other."""
    usage, top = ground.fleet.usage, outweigh(ground, takes)[0]
    low, high = ground.extremes(usage)
    # Brokers busy with different resources are all above what an even spread would be.
    mean = max(_mean(ground, takes), low)
    cost, longest = 1 + len(usage) // 100, max(effort // 10, 2 * len(usage))
    firsts: _Firsts = {}
    count = min(max(_TRIED // max(len(ground.brokers), 1), _FEWEST), _POSITIONS)
    for part in _WIDTHS:
        width = part * target
        bands = positions(low, high, mean, width, count)
        if top > mean + width / 2:
            bands.insert(0, Band(top - width, top))
        found = []
        for band in bands:
            trial = _Trial(ground, takes, keeps, firsts)
            effort -= cost * trial.run(band, _WORTH * target, longest)
            found.append(trial.board.needed())
            if effort <= 0:
                break
        yield found
        if effort <= 0:
            return


def outweigh(ground: Ground, takes: Takes) -> tuple[float, float]:
    """The usage of the best broker for the bundle that takes most, with only it, and that of all
    brokers if everything were spread evenly."""
    rows = np.flatnonzero(ground.held)
    if not rows.size:
        return 0.0, 0.0
    there = np.array(
        [np.bincount(ground.fleet.where, each, takes.used.shape[1]) for each in takes.need]
    )
    base = (takes.used - there)[:, ground.brokers]
    scale = takes.scale[:, ground.brokers]
    largest = rows[int(np.argmax((takes.need[:, rows] * scale.min(axis=1)[:, None]).max(axis=0)))]
    alone = ((base + takes.need[:, [largest]]) * scale).max(axis=0).min()
    return float(alone), _mean(ground, takes)


def _mean(ground: Ground, takes: Takes) -> float:
    """The usage of all brokers if the leading resource were spread evenly."""
    used, scale = takes.used[:, ground.brokers], takes.scale[:, ground.brokers]
    counted = (scale > 0).all(axis=1)
    even = used[counted].sum(axis=1) / (1.0 / scale[counted]).sum(axis=1)
    return float(even.max(initial=0.0))


_Firsts = dict[tuple[int, bool], Candidates]
"""A broker, and whether it is to be relieved or filled, to the moves for that at the start."""


class _Trial:
    def __init__(self, ground: Ground, takes: Takes, keeps: list[int], firsts: _Firsts) -> None:
        self._ground, self._takes, self._keeps, self._firsts = ground, takes, keeps, firsts
        self.board = SeveralBoard(ground, takes)
        self._receives = np.zeros(len(ground.fleet.usage), np.bool_)
        self._receives[ground.receivers] = True
        self._out = np.ones_like(self._receives)
        self._out[ground.brokers] = False
        self._aside = self._out.copy()

    def run(self, band: Band, worth: float, most: int) -> int:
        """Move until nothing helps; returns the effort."""
        again = _AGAIN
        for effort in range(most):
            off = np.where(self._receives, band.low - self.board.usage, -np.inf)
            off = np.where(self._aside, -np.inf, np.maximum(self.board.usage - band.high, off))
            worst = int(np.argmax(off))
            if off[worst] <= worth:
                if not again or not self.board.steps:
                    return effort
                # Moves made room since these were set aside.
                self._aside, again = self._out.copy(), again - 1
                continue
            above = bool(self.board.usage[worst] > band.high)
            found = self._candidates(worst, above).best(band, worth)
            if found is None:
                self._aside[worst] = True
            else:
                self.board.move(found)
                self._aside[[found.source, found.destination]] = False
        return most

    def _candidates(self, broker: int, above: bool) -> Candidates:
        """The moves that relieve the broker if it is above the band, or that fill it."""
        key, first = (broker, above), not self.board.steps
        if first and key in self._firsts:
            return self._firsts[key]
        found = self._relieving(broker) if above else self._filling(broker)
        if first and len(self._firsts) < _SHARED:
            self._firsts[key] = found
        return found

    def _relieving(self, hot: int) -> Candidates:
        rows, scale = self._bundles(hot), self._takes.scale
        busy = int(np.argmax(self.board.used[:, hot] * scale[:, hot]))
        there = self._ground.receivers[self._ground.receivers != hot]
        room = self.board.used[busy, there] * scale[busy, there]
        some = np.concatenate((_least(self.board.usage[there], _OTHERS), _least(room, _OTHERS)))
        return self.board.compare(np.full(len(rows), hot), rows, there[some])

    def _filling(self, cold: int) -> Candidates:
        givers = self._ground.brokers[self._ground.brokers != cold]
        givers = givers[_least(-self.board.usage[givers], _OTHERS)]
        rows = [self._bundles(giver) for giver in givers.tolist()]
        sources = np.repeat(givers, [len(each) for each in rows])
        return self.board.compare(sources, np.concatenate(rows), np.array([cold]))

    def _bundles(self, broker: int) -> Ints:
        """Rows that the broker may give, the largest if there are many."""
        rows = self.board.held(broker)
        if len(rows) <= self._keeps[broker]:
            return rows[:0]
        if len(rows) > _BUNDLES:
            size = (self._takes.need[:, rows] * self._takes.scale[:, [broker]]).max(axis=0)
            rows = rows[_least(-size, _BUNDLES)]
        return rows


def _least(values: Floats, count: int) -> Ints:
    """Places of the least values, in order of place."""
    if len(values) <= count:
        return np.arange(len(values))
    least: Ints = np.sort(np.argpartition(values, count)[:count])
    return least
