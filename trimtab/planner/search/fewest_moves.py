"""Search the plan with the fewest moves, within a limited effort.

It tries bands at several positions, then narrower bands if none reaches the range; if few moves are
needed, it looks for fewer still. A band is left out if more bundles must leave the brokers above it
than the best plan moves that reaches the range. A range that the largest bundle makes impossible
(below the floor) is not a target. Of two plans that reach the range, the one with fewer moves is
better; a plan that moves much more load than necessary is penalised: its moves count more. A trial
that its effort cuts short is the plan: the next round continues it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search.bands import run_trials
from trimtab.planner.search.beam import ENDS, search_beam
from trimtab.planner.search.floor import stand_highest
from trimtab.planner.search.ground import Band, Ground
from trimtab.planner.search.least import fewest_leaving, least_moved
from trimtab.planner.search.levels import mean_of, positions
from trimtab.planner.search.order import order_moves
from trimtab.planner.search.relief import relieve_unsure
from trimtab.planner.search.several import try_bands
from trimtab.planner.search.trial import Trial, keep_least, trial_of

_POSITIONS: Final = 15
"""Positions of a band around the mean. Lower: a plan with fewer moves is missed; higher: effort."""
_NARROWER: Final = (1.0, 0.85, 0.7, 0.5, 0.3)
"""Widths of bands as parts of the range, tried in turn until the range is reached: a trial often
ends wider than its band. More widths: more effort where no plan reaches the range."""
_FEW: Final = 6
"""The most moves of a plan for which the beam looks for fewer: its effort grows with each move."""
_WHOLE: Final = 2 * ENDS
"""The most brokers for which the beam looks for so few whatever the trials need: all of them take
part in it, and a trial may miss such a plan by many moves."""
_SMALL: Final = 16
"""The most bundles for which the beam may move all of them: then it can afford any depth."""
_BEAM_EFFORT: Final = 30_000
"""``planner.effort`` below which there is no beam search: as much as the beam itself may try."""
_ABOVE_FLOOR: Final = 1.06
"""Multiple of the floor that a plan aims at: possible, and below `outlook.CLEARLY`, so that the
result causes no other plan."""
_PART: Final = 10
"""``planner.effort`` over what one trial may take. Lower: a large plan takes longer; higher: it
takes more rounds. A round grants 10,000 moves unless settings say otherwise, and 40,000 steps are
tried by default."""
_EACH: Final = 2
"""Steps a broker that a trial may take in any case: each hot one must give something and each cold
one receive, or the range would stay."""
_EXCESS_LOAD: Final = 1.1
"""Multiple of the least load above which a plan is penalised. Lower: more moves to save load;
higher: large bundles move to save moves. With the penalty 5 plans instead of 14 exceed it, and the
mean is 39.4 moves instead of 39.2 (skewed start, seeds 1 to 200)."""
_PENALTY: Final = 1.24
"""What one move of a penalised plan counts as: below 5/4, so 4 such moves still beat 5."""
_EPSILON: Final = 1e-9
"""Tolerance for rounding: a bundle alone on its broker is not above the band made for it."""
_STANDS_OUT: Final = 0.15
"""How far above the mean, or the range to reach if that is more, a broker is relieved of what is
not known to help; near overload always. Lower: more moves that teach and relieve little; higher:
what no report explains stays where it is."""


class _Goal(NamedTuple):
    """What a plan is judged by: the range to reach, and the least load that must move for it,
    infinite if unknown."""

    width: float
    least: float
    top: float
    """The unavoidable usage: that of the best broker for the largest bundle, with only that bundle.
    """
    several: bool = False
    """Whether several resources compete: then load is no one's, and of two plans with as many moves
    the one that leaves the hottest broker less busy is better."""


def find_plan(ground: Ground, keeps: list[int], target: float, effort: int) -> Trial:
    """The best plan found for a range of ``target``, in an order in which no destination ever
    exceeds the start's peak."""
    if ground.fleet.takes is not None:
        return _several(ground, ground.fleet.takes, keeps, target, effort)
    top, others = stand_highest(ground)
    most, few = _FEW, len(ground.rows) <= _SMALL
    width = max(target, _ABOVE_FLOOR * (top - others))
    # Few bundles are too large for the least load to be reachable.
    goal = _Goal(width, np.inf if few else _least(ground, width), top)
    best = _banded(ground, keeps, goal, effort)
    if few:
        # In a small fleet even a little less range may be worth a move, also above the floor.
        goal, most = goal._replace(width=target), len(ground.rows)
    searchable = effort >= _BEAM_EFFORT and not best.cut
    likely = len(best.steps) <= most or len(ground.brokers) <= _WHOLE
    if searchable and (best.range > goal.width or likely):
        most = min(len(best.steps) - 1, most) if best.range <= goal.width else most
        for steps in search_beam(ground, keeps, goal.width, most):
            best = _better(ground, keeps, best, trial_of(ground, steps), goal)
    return best


def _several(ground: Ground, takes: Takes, keeps: list[int], target: float, effort: int) -> Trial:
    """The best plan where several resources compete."""
    top, others = stand_highest(ground)
    width = max(target, _ABOVE_FLOOR * (top - others))
    goal, best = _Goal(width, np.inf, top, several=True), trial_of(ground, ())
    for found in try_bands(ground, takes, keeps, width, effort):
        for steps in found:
            best = _better(ground, keeps, best, trial_of(ground, steps), goal)
        if best.range <= width or not best.steps:
            break
    # The next plan goes on from what these moves tell.
    cost, most = _limits(ground, effort)
    limit = min(ground.fleet.near_overload, mean_of(ground) + max(_STANDS_OUT, target))
    relief = relieve_unsure(ground, keeps, best.steps, limit, most // cost)
    return trial_of(ground, (*best.steps, *relief), cut=True) if relief else best


def _limits(ground: Ground, effort: int) -> tuple[int, int]:
    """What a step costs, and the most that a trial may take."""
    brokers = len(ground.brokers)
    return 1 + brokers // 100, max(effort // _PART, _EACH * brokers)


def _banded(ground: Ground, keeps: list[int], goal: _Goal, effort: int) -> Trial:
    low, high = ground.extremes(ground.fleet.usage)
    best = Trial((), high - low, 0.0, 1, top=high)
    cost, most = _limits(ground, effort)
    for narrower in _NARROWER:
        for band in _bands(ground, goal, narrower * goal.width):
            if best.range <= goal.width and fewest_leaving(ground, band) > len(best.steps):
                continue
            for trial in run_trials(ground, keeps, band, most):
                # Also that of a trial which was spared: the same plan, however it is found.
                effort -= trial.effort * cost
                best = _better(ground, keeps, best, trial, goal)
                if best.steps and (effort <= 0 or best.cut):
                    return best
            if effort <= 0:
                return best
        if best.range <= goal.width:
            break
    return best


def _bands(ground: Ground, goal: _Goal, width: float) -> list[Band]:
    mean = mean_of(ground)
    bands = positions(*ground.extremes(ground.fleet.usage), mean, width, _POSITIONS)
    if goal.top > mean + width / 2:
        bands.insert(0, Band(goal.top - width, goal.top + _EPSILON))
    return bands


def _least(ground: Ground, width: float) -> float:
    fleet, brokers = ground.fleet, ground.brokers
    receives = np.isin(brokers, ground.receivers)
    return least_moved(fleet.usage[brokers], 1.0 / fleet.gain[brokers], width, receives)


def _better(ground: Ground, keeps: list[int], best: Trial, trial: Trial, goal: _Goal) -> Trial:
    """The better of the two; of ``trial`` only the steps that can be put into an order."""
    if _merit(trial, goal) >= _merit(best, goal):
        return best
    steps = order_moves(ground.fleet, trial.steps)
    whole = len(steps) == len(trial.steps)
    if whole:
        trial = trial._replace(steps=steps)
    else:
        trial = trial_of(ground, keep_least(ground, keeps, steps), cut=trial.cut)
    return min(best, trial, key=lambda trial: _merit(trial, goal))


def _merit(trial: Trial, goal: _Goal) -> tuple[float, float, float]:
    """A plan's rank; smaller is better."""
    beyond = trial.range if trial.range > goal.width + 1e-9 else 0.0
    penalised = trial.load > _EXCESS_LOAD * goal.least
    moves = len(trial.steps) * (_PENALTY if penalised else 1.0)
    return round(beyond, 6), moves, trial.top if goal.several else trial.load
