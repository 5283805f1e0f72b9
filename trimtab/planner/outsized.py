"""Bundles so large that many small ones would have to leave in their stead: they go first.

for each broker above the band whose largest bundle is more than it can spare, largest first:
  if the others it can spare do not bring it into the band, or too many of them would have to go:
    the largest goes to the coldest broker, if that stays in the band or can make room with a few
Its host drops below the band, and is filled again with larger ones than would have left.
"""

from __future__ import annotations

from typing import Final

from trimtab.planner.board import Band, Board, Shelf
from trimtab.view import Ints

_MANY: Final = 6
_FEW: Final = 4


def sent_first(board: Board, brokers: Ints, band: Band) -> None:
    """Move them on the board; ``brokers`` are the rows that take part."""
    hosts = [
        (-board.shelf(broker).sizes[-1], broker)
        for broker in brokers.tolist()
        if board.usage[broker] > band.high and _outsized(board, broker, band)
    ]
    for size, host in sorted(hosts):
        cold = board.coldest()
        if cold is None or cold == host:
            return
        if -size <= board.below(cold, band.high) + sum(board.shelf(cold).sizes[-_FEW:]):
            board.move(len(board.shelf(host).sizes) - 1, host, cold)


def _outsized(board: Board, broker: int, band: Band) -> bool:
    shelf = board.shelf(broker)
    if not board.may_give(broker):
        return False
    need, spare = board.above(broker, band.high), board.above(broker, band.low)
    return shelf.sizes[-1] > spare and _count(shelf, need, spare) >= _MANY


def _count(shelf: Shelf, need: float, spare: float) -> int:
    """How many must leave, largest first, for ``need`` without taking more than ``spare``; _MANY if
    that is not to be had with fewer."""
    at, taken, count = shelf.largest(spare), 0.0, 0
    while at is not None and at >= 0 and taken < need and count < _MANY:
        if taken + shelf.sizes[at] <= spare:
            taken += shelf.sizes[at]
            count += 1
        at -= 1
    return count if taken >= need else _MANY
