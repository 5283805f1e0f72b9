"""Bundles that must move before others are chosen; their hosts are filled again afterwards.

misplaced = above the band even alone on its broker: largest first, to the stronger broker that it
            makes least busy, if that stays in the band with it and all bundles as large; smaller
            bundles make room. Its host may be empty meanwhile.
outsized  = so large that otherwise many small ones would have to leave:
  for each broker above the band whose largest bundle is more than it can spare, largest first:
    if the others it can spare do not bring it into the band, or too many of them would have to go:
      the largest goes to the coldest broker, if that stays in the band or can make room with a few
  Its host drops below the band, and is filled again with larger bundles than would have left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Band, Ground
from trimtab.planner.search.shelf import Shelf

_MANY: Final = 6
"""Small bundles instead of which the largest goes. Lower: hosts drop below the band for little;
higher: more moves."""
_FEW: Final = 4
"""Bundles that the coldest broker may give away to make room. Lower: the largest stays; higher: as
many moves as it should save."""
_LOOKED_AT: Final = 32
"""Stronger brokers that are tried for a misplaced bundle: bounds the time on large fleets."""


def send_misplaced(board: Board, ground: Ground, band: Band, most: int) -> None:
    """Move the misplaced bundles on the board, in at most ``most`` steps; to look at all brokers
    counts a step a hundred."""
    largest, gain = ground.largest, ground.fleet.gain
    above = (ground.fixed + gain * largest > band.high)[ground.brokers]
    hosts = ground.brokers[above & (largest[ground.brokers] > 0)]
    usage, arrived = ground.fleet.usage.copy(), np.zeros(len(gain))
    hosts = hosts[np.argsort(-largest[hosts], kind="stable")]
    for host in hosts[: most // (1 + len(gain) // 100)].tolist():
        size = float(largest[host])
        stronger = ground.receivers[gain[ground.receivers] < gain[host]]
        for to in _least_busy(usage[stronger] + gain[stronger] * size, stronger):
            sizes = board.shelves[to].sizes
            as_large = arrived[to] + sum(sizes[bisect_left(sizes, size) :])
            if ground.fixed[to] + gain[to] * (size + as_large) <= band.high:
                board.move(len(board.shelves[host].sizes) - 1, host, to)
                arrived[to] += size
                usage[to] += gain[to] * size
                usage[host] -= gain[host] * size
                break


def _least_busy(busy: Floats, rows: Ints) -> list[int]:
    """At most _LOOKED_AT of the broker ``rows``, the least ``busy`` first."""
    if len(rows) > _LOOKED_AT:
        some = np.argpartition(busy, _LOOKED_AT)[:_LOOKED_AT]
        busy, rows = busy[some], rows[some]
    least: list[int] = rows[np.lexsort((rows, busy))].tolist()
    return least


def find_outsized(board: Board, brokers: Ints, band: Band) -> list[int]:
    """The hosts of outsized bundles, that of the largest first; ``brokers`` are the rows that take
    part."""
    hosts = [
        (-board.shelves[broker].sizes[-1], broker)
        for broker in brokers.tolist()
        if board.usage[broker] > band.high and _outsized(board, broker, band)
    ]
    return [host for _, host in sorted(hosts)]


def send_outsized(board: Board, hosts: Sequence[int], band: Band) -> None:
    """Move the outsized bundles of the ``hosts`` on the board."""
    for host in hosts:
        cold = board.coldest()
        if cold is None or cold == host:
            return
        largest = board.shelves[host].sizes[-1]
        if largest <= board.below(cold, band.high) + sum(board.shelves[cold].sizes[-_FEW:]):
            board.move(len(board.shelves[host].sizes) - 1, host, cold)


def _outsized(board: Board, broker: int, band: Band) -> bool:
    shelf = board.shelves[broker]
    if not board.may_give(broker):
        return False
    need, spare = board.above(broker, band.high), board.above(broker, band.low)
    return shelf.sizes[-1] > spare and _count(shelf, need, spare) >= _MANY


def _count(shelf: Shelf, need: float, spare: float) -> int:
    """How many must leave, largest first, to cover ``need`` without exceeding ``spare``; _MANY if
    that is unreachable with fewer."""
    at, taken, count = shelf.largest(spare), 0.0, 0
    while at is not None and at >= 0 and taken < need and count < _MANY:
        if taken + shelf.sizes[at] <= spare:
            taken += shelf.sizes[at]
            count += 1
        at -= 1
    return count if taken >= need else _MANY
