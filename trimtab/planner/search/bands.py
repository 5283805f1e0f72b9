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

from collections.abc import Iterator, Sequence
from typing import Final

from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Band, BoardMove, Ground
from trimtab.planner.search.habits import HABITS, Habit, choose_bundle
from trimtab.planner.search.outsized import find_outsized, send_misplaced, send_outsized
from trimtab.planner.search.trial import Trial, keep_least, load_of, trial_of

_EPSILON: Final = 1e-12
"""Tolerance for rounding: a broker at the edge of the band is in it."""
_GIVERS: Final = 8
"""Hottest brokers that may fill a cold one. Lower: what fits best is missed; higher: effort."""


def run_trials(ground: Ground, keeps: list[int], band: Band, most: int) -> Iterator[Trial]:
    """Try one band with each habit, in at most ``most`` steps each. Habits that choose alike share
    a trial: where brokers have many bundles, most do."""
    tried: dict[Habit, Trial] = {}
    for habit in HABITS:
        if habit not in tried:
            left = [other for other in HABITS if other not in tried]
            trial, alike = run_trial(ground, keeps, band, left, most)
            tried |= dict.fromkeys(alike, trial)
        yield tried[habit]


def run_trial(
    ground: Ground, keeps: list[int], band: Band, habits: Sequence[Habit], most: int
) -> tuple[Trial, Sequence[Habit]]:
    """Try one band with the first habit; returns also those of the ``habits`` that would have made
    the same trial."""
    board = Board(ground, keeps)
    send_misplaced(board, ground, band, most)
    habits = _send_outsized(board, ground, band, habits)
    effort = len(board.steps)
    while effort <= min(most, len(ground.rows)):
        effort += 1
        hot, cold = board.hottest(), board.coldest()
        if hot is not None and board.usage[hot] > band.high + _EPSILON:
            habits = _relieve(board, hot, cold, band, habits)
        elif cold is not None and board.usage[cold] < band.low - _EPSILON:
            _fill(board, cold, band)
        else:
            break
    cut = effort > most
    needed = _needed(board, ground)
    steps = keep_least(ground, keeps, needed)
    if len(steps) < len(needed):
        return trial_of(ground, steps, effort, cut), habits
    low, high = board.extremes()
    return Trial(steps, high - low, load_of(ground.fleet, steps), effort, cut, high), habits


def _send_outsized(
    board: Board, ground: Ground, band: Band, habits: Sequence[Habit]
) -> Sequence[Habit]:
    """Begin as the first habit does; returns the habits that begin alike, as `_relieve` does."""
    if not any(habit.bold for habit in habits):
        return habits
    hosts = find_outsized(board, ground.brokers, band)
    if habits[0].bold:
        send_outsized(board, hosts, band)
    return [habit for habit in habits if not hosts or habit.bold == habits[0].bold]


def _relieve(
    board: Board, hot: int, cold: int | None, band: Band, habits: Sequence[Habit]
) -> Sequence[Habit]:
    """Move a bundle from the hottest broker to the coldest as the first habit does; set the hottest
    aside if none helps. Returns the habits that do the same."""
    if cold is None or hot == cold or not board.may_give(hot):
        board.set_aside_hottest()
        return habits
    shelf = board.shelves[hot]
    need, spare = board.above(hot, band.high), board.above(hot, band.low)
    lack, room = board.below(cold, band.low), board.below(cold, band.high)
    at = shelf.fitting(max(need, lack), min(spare, room))
    if at is None:
        places = [choose_bundle(board, hot, cold, band, habit) for habit in habits]
        at = places[0]
        habits = [habit for habit, place in zip(habits, places, strict=True) if place == at]
    if at is None:
        board.set_aside_hottest()
    else:
        board.move(at, hot, cold)
    return habits


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
    low, high = board.extremes()
    kept = dict.fromkeys(board.steps)
    for size, step in sorted(zip(sizes, board.steps, strict=True)):
        back = usage[step.source] + size * gain[step.source]
        gone = usage[step.destination] - size * gain[step.destination]
        if back <= high and gone >= low:
            usage[step.source], usage[step.destination] = back, gone
            del kept[step]
    return tuple(kept)
