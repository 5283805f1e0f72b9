"""Bring every broker into a band of usage with few moves: largest bundles first, best fit.

while the hottest broker is above the band, or the coldest below:
  hottest above: give the coldest the smallest bundle that brings both, or else the hottest, into
                 the band; or else the largest that takes neither past it, or that brings both
                 nearer to the middle; or else one so big that its host drops below the band
  else:          take for the coldest, from the hottest brokers, the smallest bundle that brings it
                 into the band, or else the largest that can be spared
then undo the moves that the band does not need
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Band, BoardMove, Ground
from trimtab.planner.search.outsized import send_misplaced, send_outsized
from trimtab.planner.search.shelf import Shelf
from trimtab.planner.search.trial import Trial, keep_least, load_of, trial_of

_EPSILON: Final = 1e-12
"""Tolerance for rounding: a broker at the edge of the band is in it."""
_GIVERS: Final = 8
"""Hottest brokers that may fill a cold one. Lower: what fits best is missed; higher: effort."""
_OVERSHOOT: Final = 1.4
"""Multiple of what a host can spare that a bold trial lets go. Lower: as without the habit; higher:
the host needs many bundles to be filled again."""
_MUCH: Final = 1.5
"""How many times as large as the usual choice a bundle must be to be preferred by a bold trial: a
smaller gain does not pay for filling the host again."""


class Habit(NamedTuple):
    """How a trial chooses where several bundles are possible."""

    thrifty: bool
    """Ignore what a receiver lacks if a smaller bundle is enough for the hottest broker."""
    bold: bool
    """Prefer a far larger bundle although its host drops below the band, and move it first where
    otherwise many small ones would go."""
    nearer: bool = False
    """Prefer the largest bundle that brings both brokers nearer to the middle of the band, past it
    or not: if bundles are larger than the band is wide, smaller ones then correct the rest."""
    leaping: bool = False
    """Move a bundle that fits nowhere to a broker that makes room for it with smaller ones."""


HABITS: Final = (
    Habit(thrifty=True, bold=False),
    Habit(thrifty=False, bold=False),
    Habit(thrifty=True, bold=True),
    Habit(thrifty=False, bold=True),
    Habit(thrifty=False, bold=False, nearer=True),
    Habit(thrifty=False, bold=False, leaping=True),
)
"""The habits tried for each band; each costs a further trial per band. ``nearer`` reduces the moves
of the bimodal scenario from 44.8 to 39.2 on average (seeds 1 to 20)."""


def run_trial(ground: Ground, keeps: list[int], band: Band, habit: Habit, most: int) -> Trial:
    """Try one band with one habit, in at most ``most`` steps."""
    board = Board(ground, keeps)
    send_misplaced(board, ground, band, most)
    if habit.bold:
        send_outsized(board, ground.brokers, band)
    effort = len(board.steps)
    while effort <= min(most, len(ground.rows)):
        effort += 1
        hot, cold = board.hottest(), board.coldest()
        if hot is not None and board.usage[hot] > band.high + _EPSILON:
            _relieve(board, hot, cold, band, habit)
        elif cold is not None and board.usage[cold] < band.low - _EPSILON:
            _fill(board, cold, band)
        else:
            break
    cut = effort > most
    needed = _needed(board, ground)
    steps = keep_least(ground, keeps, needed)
    if len(steps) < len(needed):
        return trial_of(ground, steps, effort, cut)
    low, high = board.reach()
    return Trial(steps, high - low, load_of(ground.fleet, steps), effort, cut, high)


def _relieve(board: Board, hot: int, cold: int | None, band: Band, habit: Habit) -> None:
    """Move a bundle from the hottest broker to the coldest; set the hottest aside if none helps."""
    if cold is not None and hot != cold and board.may_give(hot):
        at = _choose(board, hot, cold, band, habit)
        if at is not None:
            board.move(at, hot, cold)
            return
    board.set_aside_hottest()


def _choose(board: Board, hot: int, cold: int, band: Band, habit: Habit) -> int | None:
    """Position, on the hot broker's shelf, of the bundle to move to the cold broker."""
    shelf = board.shelves[hot]
    need, spare = board.above(hot, band.high), board.above(hot, band.low)
    lack, room = board.below(cold, band.low), board.below(cold, band.high)
    most = min(spare, room)
    at = shelf.fitting(max(need, lack), most)
    if at is None and habit.nearer:
        middle = (band.low + band.high) / 2
        at = shelf.largest(2 * min(board.above(hot, middle), board.below(cold, middle)))
    if at is None and habit.leaping and need > room:
        at = _leaping(shelf, board.shelves[cold], room, spare)
    if at is None and habit.thrifty:
        at = shelf.fitting(need, most)
    if at is None:
        at = shelf.largest(most)
        if habit.bold:
            at = _bolder(shelf, at, spare, room)
    # The last resort: the host drops below the band, and is filled again with smaller ones.
    return at if at is not None else shelf.fitting(need, room)


def _leaping(shelf: Shelf, other: Shelf, room: float, spare: float) -> int | None:
    """The smallest bundle that fits the ``other`` broker only after that gives away bundles."""
    at = shelf.fitting(room, spare)
    return at if at is None or shelf.sizes[at] <= room + other.total else None


def _bolder(shelf: Shelf, at: int | None, spare: float, room: float) -> int | None:
    """A much larger bundle than the one ``at`` this place, if most of that load must leave anyway:
    its host drops below the band, and is filled again."""
    larger = shelf.largest(min(room, spare * _OVERSHOOT))
    if larger is None or at is None or shelf.sizes[larger] < _MUCH * shelf.sizes[at]:
        return at if at is not None else larger
    return larger


def _fill(board: Board, cold: int, band: Band) -> None:
    """Move a bundle of a hot broker to the coldest; set the coldest aside if none fits."""
    lack, room = board.below(cold, band.low), board.below(cold, band.high)
    best: tuple[float, int, int] | None = None
    for giver in board.givers(_GIVERS):
        most = min(room, board.above(giver, band.low))
        if giver == cold or not board.may_give(giver):
            continue
        shelf = board.shelves[giver]
        at = shelf.fitting(lack, most)
        if at is not None:
            board.move(at, giver, cold)
            return
        at = shelf.largest(most)
        if at is not None and (best is None or shelf.sizes[at] > best[0]):
            best = (shelf.sizes[at], at, giver)
    if best is None:
        board.set_aside_coldest()
    else:
        board.move(best[1], best[2], cold)


def _needed(board: Board, ground: Ground) -> tuple[BoardMove, ...]:
    """Drop the steps that can be undone without a wider range; smallest bundles first."""
    usage, gain = board.usage, board.gain
    sizes = ground.fleet.size[[step.bundle for step in board.steps]].tolist()
    low, high = board.reach()
    kept = dict.fromkeys(board.steps)
    for size, step in sorted(zip(sizes, board.steps, strict=True)):
        back = usage[step.source] + size * gain[step.source]
        gone = usage[step.destination] - size * gain[step.destination]
        if back <= high and gone >= low:
            usage[step.source], usage[step.destination] = back, gone
            del kept[step]
    return tuple(kept)
