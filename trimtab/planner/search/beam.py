"""Beam search for plans with fewer moves: keeps the best states after each move.

To narrow the range, a move must touch the hottest or the coldest broker, and the order of moves
does not change their result: so each state is followed by the moves off its hottest broker, and by
those onto its coldest. Brokers that are neither among the hottest nor the coldest stay as they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.planner.search.ground import BoardMove, Ground, find_givers

_TRIES: Final = 30_000
"""States tried in all. Lower: a narrower beam misses plans; higher: a plan takes longer."""
ENDS: Final = 6
"""Brokers at either end that take part. Lower: moves in the middle are missed; higher: a narrower
beam."""
_OTHERS: Final = 4
"""Brokers that are tried at the other end of a move; the same trade-off."""
_BUNDLES: Final = 12
"""Bundles of a broker that are tried, largest first; the same trade-off."""


class _State(NamedTuple):
    usage: Floats
    """(k,) usage of the brokers that take part."""
    steps: tuple[tuple[int, int, int], ...]
    """Bundle row, and source and destination among those that take part."""
    beyond: float


def search_beam(
    ground: Ground, keeps: list[int], width: float, depth: int
) -> list[tuple[BoardMove, ...]]:
    """Find the best plan of 1 move, of 2, and so on up to ``depth``. Stop at the first plan whose
    range is at most ``width``."""
    search = _Search(ground, keeps, width, depth)
    beam = [search.first]
    found = []
    for _ in range(depth):
        beam = search.next(beam)
        if not beam:
            break
        best = min(beam, key=lambda state: (search.range(state.usage), state.beyond))
        found.append(search.steps(best))
        if search.range(best.usage) <= width:
            break
    return found


class _Search:
    def __init__(self, ground: Ground, keeps: list[int], width: float, depth: int) -> None:
        fleet = ground.fleet
        brokers = ground.brokers[np.argsort(fleet.usage[ground.brokers], kind="stable")]
        ends = np.ones(len(brokers), np.bool_)
        ends[ENDS:-ENDS] = False
        rest = fleet.usage[brokers[~ends]]
        receives = np.isin(brokers, ground.receivers)
        self._most = rest.max(initial=-np.inf)
        self._least = rest[receives[~ends]].min(initial=np.inf)
        self._brokers: list[int] = brokers[ends].tolist()
        self._receives = receives[ends]
        self._gain, self._size = fleet.gain[self._brokers], fleet.size
        self._half, self._middle = width / 2, float(np.median(fleet.usage[brokers]))
        self._keeps = [keeps[broker] for broker in self._brokers]
        self._listed: list[list[int]] = [
            ground.order[ground.ends[b] : ground.ends[b + 1]][::-1].tolist() for b in self._brokers
        ]
        followers = sum(min(len(rows), _BUNDLES) for rows in self._listed) + _OTHERS * _BUNDLES
        self._width = max(_TRIES // max(2 * followers * depth, 1), 4)
        self.first = _State(fleet.usage[self._brokers], (), np.inf)

    def range(self, usage: Floats) -> float:
        """The range of all brokers, including those that do not take part (`Ground.extremes`)."""
        high = max(usage.max(), self._most)
        counts = self._receives | find_givers(usage, self.first.usage)
        return float(high - min(usage[counts].min(initial=high), self._least))

    def steps(self, state: _State) -> tuple[BoardMove, ...]:
        """The state's moves in rows of the view."""
        names = self._brokers
        return tuple(BoardMove(row, names[at], names[to]) for row, at, to in state.steps)

    def next(self, beam: list[_State]) -> list[_State]:
        """The best states one move later, without duplicates."""
        seen: dict[bytes, _State] = {}
        for state in beam:
            moves = self._moves(state)
            if not moves:
                continue
            rows, at, to = np.array(moves).T
            size, each = self._size[rows], np.arange(len(rows))
            usage = np.tile(state.usage, (len(rows), 1))
            usage[each, at] -= size * self._gain[at]
            usage[each, to] += size * self._gain[to]
            beyond = self._beyond(usage)
            for place in np.argsort(beyond, kind="stable")[: 2 * self._width].tolist():
                key = usage[place].round(12).tobytes()
                if key not in seen:
                    steps = (*state.steps, moves[place])
                    seen[key] = _State(usage[place], steps, float(beyond[place]))
        # Where no band is reachable, the state closest to one is not the one with the least range.
        found = list(seen.values())
        by_band = sorted(found, key=lambda state: state.beyond)[: self._width]
        by_range = sorted(found, key=lambda state: self.range(state.usage))[: self._width]
        return [*by_band, *(s for s in by_range if not any(s is other for other in by_band))]

    def _beyond(self, usage: Floats) -> Floats:
        """(rows,) the brokers' total distance from a band around the median, plus that from a band
        around the middle of their range."""
        middle = (usage.max(axis=1) + usage.min(axis=1)) / 2
        apart = np.maximum(np.abs(usage - self._middle) - self._half, 0.0).sum(axis=1)
        around = np.abs(usage - middle[:, np.newaxis]) - self._half
        total: Floats = apart + np.maximum(around, 0.0).sum(axis=1)
        return total

    def _moves(self, state: _State) -> list[tuple[int, int, int]]:
        order = np.argsort(state.usage, kind="stable")
        gone = {row for row, _, _ in state.steps}
        cold = order[self._receives[order]]
        moves = self._off(int(order[-1]), cold[:_OTHERS], gone)
        for at in order[::-1][1 : _OTHERS + 1].tolist():
            moves += self._off(at, cold[:1], gone)
        return moves

    def _off(self, at: int, destinations: Ints, gone: set[int]) -> list[tuple[int, int, int]]:
        left = [row for row in self._listed[at] if row not in gone]
        if len(left) <= self._keeps[at]:
            return []
        others = [to for to in destinations.tolist() if to != at]
        return [(row, at, to) for row in left[:_BUNDLES] for to in others]
