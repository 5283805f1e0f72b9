"""The plan with the fewest moves that was found, within what may be tried.

Bands at several positions are tried, the narrower ones when none holds; then, where few moves are
needed, fewer still are looked for. What a bundle that no broker can carry beside others forbids
(the floor) is not striven for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from trimtab.planner.bands import HABITS, Trial, load_of, mean_of, positions, tried
from trimtab.planner.beam import searched
from trimtab.planner.board import Ground, Step, shift
from trimtab.planner.fleet import Fleet

_POSITIONS: Final = 15
_NARROWER: Final = (1.0, 0.85, 0.7, 0.5, 0.3)
"""Parts of the range that bands are made of, one after the other while the range is not met."""
_FEW: Final = 6
"""Moves up to which fewer are looked for move by move."""
_SMALL: Final = 16
"""Bundles up to which all that there are may be moved in the search for fewer."""
_BEAM_EFFORT: Final = 30_000
_ABOVE_FLOOR: Final = 1.06
_TWO: Final = 2


def floor_of(ground: Ground) -> float:
    """Range that the largest bundle forces wherever it is."""
    largest = ground.fleet.size.max(initial=0.0, where=ground.held)
    return floor_at(ground, float(largest))


def floor_at(ground: Ground, size: float) -> float:
    """Range that a bundle of the fleet forces if it is of this size: alone against all the rest."""
    fleet, brokers = ground.fleet, ground.brokers
    if len(brokers) < _TWO:
        return 0.0
    carried = np.bincount(fleet.where, fleet.size, len(fleet.usage))
    rest = fleet.usage - fleet.gain * carried
    alone = rest + fleet.gain * size
    host = int(np.argmin(alone[brokers]))
    left = np.delete(brokers, host)
    speed = 1.0 / fleet.gain[left]
    others = (carried[brokers].sum() - size + (speed * rest[left]).sum()) / speed.sum()
    return max(float(alone[brokers][host] - others), 0.0)


def planned(ground: Ground, keeps: list[int], target: float, effort: int) -> Trial:
    """The best plan for a range of ``target``, in an order in which no destination is ever above
    the start's peak."""
    floor, most = floor_of(ground), _FEW
    width = max(target, _ABOVE_FLOOR * floor)
    best = _banded(ground, keeps, width, effort)
    if len(ground.order) <= _SMALL:
        # Every hundredth of a small fleet's range may be worth a move, even above the floor.
        width, most = target, len(ground.order)
    if effort >= _BEAM_EFFORT and (best.range > width or len(best.steps) <= most):
        most = len(best.steps) - 1 if best.range <= width else most
        for steps in searched(ground, keeps, width, most):
            best = _better(ground, best, _of(ground, steps), width)
    return best


def _banded(ground: Ground, keeps: list[int], width: float, effort: int) -> Trial:
    usage, mean = ground.fleet.usage[ground.brokers], mean_of(ground)
    low, high = ground.reach(ground.fleet.usage)
    best = Trial((), high - low, 0.0, 1)
    cost = 1 + len(usage) // 100
    for narrower in _NARROWER:
        for band in positions(low, high, mean, narrower * width, _POSITIONS):
            for habit in HABITS:
                trial = tried(ground, keeps, band, habit)
                effort -= trial.effort * cost
                best = _better(ground, best, trial, width)
                if effort <= 0 and best.steps:
                    return best
        if best.range <= width:
            break
    return best


def _better(ground: Ground, best: Trial, trial: Trial, width: float) -> Trial:
    """The better of the two, ``trial`` as far as its steps can be brought into an order."""
    if _merit(trial, width) >= _merit(best, width):
        return best
    steps = ordered(ground.fleet, trial.steps)
    whole = len(steps) == len(trial.steps)
    trial = trial._replace(steps=steps) if whole else _of(ground, steps)
    return min(best, trial, key=lambda trial: _merit(trial, width))


def _merit(trial: Trial, width: float) -> tuple[float, int, float]:
    """Smaller is better."""
    beyond = trial.range if trial.range > width + 1e-9 else 0.0
    return round(beyond, 6), len(trial.steps), trial.load


def _of(ground: Ground, steps: tuple[Step, ...]) -> Trial:
    fleet, usage = ground.fleet, ground.fleet.usage.copy()
    shift(usage, fleet, steps)
    low, high = ground.reach(usage)
    return Trial(steps, high - low, load_of(fleet, steps), 0)


def ordered(fleet: Fleet, steps: Sequence[Step]) -> tuple[Step, ...]:
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


def _arrived(fleet: Fleet, usage: np.ndarray, step: Step) -> float:
    return float(usage[step.destination] + fleet.size[step.bundle] * fleet.gain[step.destination])
