"""The plan with the fewest moves that was found, within what may be tried.

Bands at several positions are tried, the narrower ones when none holds; then, where few moves are
needed, fewer still are looked for. What a bundle that no broker can carry beside others forbids
(the floor) is not striven for. Of two plans that reach the range the better has fewer moves, where
one that moves much more load than must be counts as having more than it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from trimtab.load_model.fleet import Fleet
from trimtab.planner.bands import HABITS, mean_of, positions, run_trial
from trimtab.planner.beam import search_beam
from trimtab.planner.board import Band, BoardMove, Ground
from trimtab.planner.least import least_moved
from trimtab.planner.trial import Trial, keep_least, trial_of

_POSITIONS: Final = 15
_NARROWER: Final = (1.0, 0.85, 0.7, 0.5, 0.3)
"""Parts of the range that bands are made of, one after the other while the range is not met."""
_FEW: Final = 6
"""Moves up to which fewer are looked for move by move."""
_SMALL: Final = 16
"""Bundles up to which all that there are may be moved in the search for fewer."""
_BEAM_EFFORT: Final = 30_000
_ABOVE_FLOOR: Final = 1.06
_DEAR: Final = 1.1
"""Of the least load: a plan that moves more is dear."""
_DEARER: Final = 1.24
"""Moves that one of a dear plan counts as."""
_EPSILON: Final = 1e-9
_TWO: Final = 2


class _Goal(NamedTuple):
    """What a plan is judged by: the range it is to reach, and the load that must be moved for it;
    that is infinite where it says nothing."""

    width: float
    least: float
    top: float
    """Usage that cannot be helped: of the best broker for the largest bundle, with it alone."""


def floor_of(ground: Ground) -> float:
    """Range that the largest bundle forces wherever it is."""
    return floor_at(ground, _largest(ground))


def _largest(ground: Ground) -> float:
    return float(ground.fleet.size.max(initial=0.0, where=ground.held))


def floor_at(ground: Ground, size: float) -> float:
    """Range that a bundle of the fleet forces if it is of this size: alone against all the rest."""
    alone, others = _against(ground, size)
    return max(alone - others, 0.0)


def _against(ground: Ground, size: float) -> tuple[float, float]:
    """Usage of the best broker for a bundle of this size, with it alone, and of all the others."""
    fleet, brokers = ground.fleet, ground.brokers
    if len(brokers) < _TWO:
        return 0.0, 0.0
    carried = np.bincount(fleet.where, fleet.size, len(fleet.usage))
    rest = fleet.usage - fleet.gain * carried
    alone = rest + fleet.gain * size
    host = int(np.argmin(alone[brokers]))
    left = np.delete(brokers, host)
    speed = 1.0 / fleet.gain[left]
    others = (carried[brokers].sum() - size + (speed * rest[left]).sum()) / speed.sum()
    return float(alone[brokers][host]), float(others)


def find_plan(ground: Ground, keeps: list[int], target: float, effort: int) -> Trial:
    """The best plan for a range of ``target``, in an order in which no destination is ever above
    the start's peak."""
    top, others = _against(ground, _largest(ground))
    most, few = _FEW, len(ground.order) <= _SMALL
    width = max(target, _ABOVE_FLOOR * (top - others))
    # Where bundles are few they are too large for the least load to be had.
    goal = _Goal(width, np.inf if few else _least(ground, width), top)
    best = _banded(ground, keeps, goal, effort)
    if few:
        # Every hundredth of a small fleet's range may be worth a move, even above the floor.
        goal, most = goal._replace(width=target), len(ground.order)
    if effort >= _BEAM_EFFORT and (best.range > goal.width or len(best.steps) <= most):
        most = len(best.steps) - 1 if best.range <= goal.width else most
        for steps in search_beam(ground, keeps, goal.width, most):
            best = _better(ground, keeps, best, trial_of(ground, steps), goal)
    return best


def _banded(ground: Ground, keeps: list[int], goal: _Goal, effort: int) -> Trial:
    usage, mean = ground.fleet.usage[ground.brokers], mean_of(ground)
    low, high = ground.reach(ground.fleet.usage)
    best = Trial((), high - low, 0.0, 1)
    cost = 1 + len(usage) // 100
    for narrower in _NARROWER:
        width = narrower * goal.width
        bands = positions(low, high, mean, width, _POSITIONS)
        if goal.top > mean + width / 2:
            bands.insert(0, Band(goal.top - width, goal.top + _EPSILON))
        for band in bands:
            for habit in HABITS:
                trial = run_trial(ground, keeps, band, habit)
                effort -= trial.effort * cost
                best = _better(ground, keeps, best, trial, goal)
                if effort <= 0 and best.steps:
                    return best
        if best.range <= goal.width:
            break
    return best


def _least(ground: Ground, width: float) -> float:
    fleet, brokers = ground.fleet, ground.brokers
    receives = np.isin(brokers, ground.receivers)
    return least_moved(fleet.usage[brokers], 1.0 / fleet.gain[brokers], width, receives)


def _better(ground: Ground, keeps: list[int], best: Trial, trial: Trial, goal: _Goal) -> Trial:
    """The better of the two, ``trial`` as far as its steps can be brought into an order."""
    if _merit(trial, goal) >= _merit(best, goal):
        return best
    steps = order_moves(ground.fleet, trial.steps)
    whole = len(steps) == len(trial.steps)
    if whole:
        trial = trial._replace(steps=steps)
    else:
        trial = trial_of(ground, keep_least(ground, keeps, steps))
    return min(best, trial, key=lambda trial: _merit(trial, goal))


def _merit(trial: Trial, goal: _Goal) -> tuple[float, float, float]:
    """Smaller is better."""
    beyond = trial.range if trial.range > goal.width + 1e-9 else 0.0
    dear = trial.load > _DEAR * goal.least
    return round(beyond, 6), len(trial.steps) * (_DEARER if dear else 1.0), trial.load


def order_moves(fleet: Fleet, steps: Sequence[BoardMove]) -> tuple[BoardMove, ...]:
    """Departures before the arrivals they make room for: with both copies of a bundle counted, no
    destination is above the start's peak. What cannot be brought into such an order is left out."""
    usage, peak = fleet.usage.copy(), float(fleet.usage.max()) + 1e-9
    waiting, done = list(steps), []
    while waiting:
        ready = [s for s in waiting if _arrived(fleet, usage, s) <= peak]
        if not ready:
            break
        for step in ready:
            arrived = _arrived(fleet, usage, step)
            if arrived <= peak:
                usage[step.destination] = arrived
                usage[step.source] -= fleet.size[step.bundle] * fleet.gain[step.source]
                done.append(step)
        placed = set(done)
        waiting = [step for step in waiting if step not in placed]
    return tuple(done)


def _arrived(fleet: Fleet, usage: np.ndarray, step: BoardMove) -> float:
    return float(usage[step.destination] + fleet.size[step.bundle] * fleet.gain[step.destination])
