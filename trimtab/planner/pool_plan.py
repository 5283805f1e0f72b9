"""Add to a plan the moves that balance the brokers of one pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trimtab.load_model.fleet_change import FleetChange
from trimtab.load_model.history import PlannerHistory
from trimtab.planner.constraints import Draft
from trimtab.planner.easing import ease
from trimtab.planner.fleet_changes import is_waiting, plan_meanwhile
from trimtab.planner.outlook import CLEARLY, Prospect, find_prospect
from trimtab.planner.ranges import find_range_after
from trimtab.planner.search.fewest_moves import find_plan
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.standing import Standing
from trimtab.planner.search.trial import Trial
from trimtab.planner.trigger import aim

_WORTH: Final = 0.1
"""The part of a range's excess over the target that a plan must gain. Lower: moves for little;
higher: a fleet that can improve only slowly stays as it is."""
_TRIES: Final = 3
"""How often a plan is looked for without the bundles that one moved straight back. Lower: some go
back; higher: a plan takes longer."""
_PARTS: Final = 3
"""How often a plan is looked for, each time without the hottest brokers that none relieved. Lower:
the others stay uneven; higher: a round without a plan takes longer."""
_EPSILON: Final = 1e-9
"""Tolerance for rounding: a plan that reaches its range is finished."""


def balance(draft: Draft, before: Prospect, unrest: float, history: PlannerHistory) -> None:
    """Add the moves of one pool to the draft; where no plan relieves its hottest brokers, as they
    are busy whatever they carry, those of a plan for the others."""
    # Moves of other bundles between the same brokers count.
    found = find_prospect(draft, before.pool, unrest) if draft.moved else before
    change = history.change if is_waiting(history, draft.view.now_ms) else None
    once = draft.fleet.on_first_reports or change is not None
    moves_before = len(draft.steps)
    for _ in range(_PARTS):
        if found is None or found.beyond <= 0:
            return
        _add_plan(draft, found, unrest, change)
        if once or len(draft.steps) > moves_before:
            return
        usage = draft.fleet.usage
        others = found.pool.brokers & (usage < usage[found.pair.hot] - found.target)
        found = find_prospect(draft, replace(found.pool, brokers=others), unrest)


def _add_plan(draft: Draft, found: Prospect, unrest: float, change: FleetChange | None) -> None:
    """Add the plan for a pool to the draft, if there is one; ``change``: of the brokers, if the
    planner waits for its end."""
    ground, settings = found.ground, draft.settings
    width = aim(settings, unrest, found.pair.accepted, relieving=draft.fleet.limit > 0)
    width = max(width, found.widened(CLEARLY * found.floor if draft.bound else found.floor, width))
    range_ = find_range_after(ground, draft.fleet, ())
    width = range_ - draft.reach * (range_ - width)

    def plan(width: float) -> Trial:
        return _find_plan(draft, found, width)

    best = plan(width) if change is None else plan_meanwhile(ground, change, width, plan)
    steps = draft.granted(best.steps)
    if draft.fleet.on_first_reports:
        steps = _first_part(ground, steps, range_ - draft.fleet.sure * (range_ - width))
    gained = range_ - find_range_after(ground, draft.fleet, steps)
    # A plan that was cut short is continued by the next one: together they gain more.
    worth = 0.0 if best.cut else _WORTH * draft.reach
    if steps and gained > worth * (range_ - max(settings.planner.target, found.floor)):
        draft.cut |= best.cut or best.range > max(width, CLEARLY * found.floor) + _EPSILON
        draft.add(steps)
    ease(draft, found.pool, ground, width, _WORTH)


def _find_plan(draft: Draft, found: Prospect, width: float) -> Trial:
    """The best plan for a range of ``width``: one without moves straight back if it is as good, or
    if several resources compete: then what a bundle takes is learned by moving it."""
    effort = draft.settings.planner.effort
    best = plan = find_plan(found.ground, draft.keeps(found.ground), width, effort)
    learned = found.ground.fleet.takes is not None
    staying: set[int] = set()
    for _ in range(_TRIES):
        returning = draft.find_returning(plan.steps)
        if not returning:
            break
        staying |= returning
        ground = draft.ground(found.pool, staying)
        plan = find_plan(ground, draft.keeps(ground), width, effort)
        if plan.range > max(width, best.range) + _EPSILON and not learned:
            return best
    return best if draft.find_returning(plan.steps) else plan


def _first_part(
    ground: Ground, steps: tuple[BoardMove, ...], width: float
) -> tuple[BoardMove, ...]:
    """The first of a plan's steps, as many as bring the range to ``width``."""
    standing = Standing(ground.fleet)
    for count, step in enumerate(steps):
        low, high = ground.extremes(standing.usage)
        if high - low <= width:
            return steps[:count]
        standing.apply(step)
    return steps
