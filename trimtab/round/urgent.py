"""What cannot wait: repairs, moves that people ask for or approve, moves off draining brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.doubt import Doubt
from trimtab.names import rows_by_name
from trimtab.ownership import Event
from trimtab.plan import Plan, ShedWish
from trimtab.reasons import SPENT, Rule
from trimtab.round.disposal import Wanted, grant
from trimtab.round.ordered_bundles import find_ordered
from trimtab.round.ordered_moves import OrderedMoves, empty_brokers, judge_moves
from trimtab.settings import Settings, WeightSettings
from trimtab.state.broker_averages import advance, remember_averages
from trimtab.state.round_state import RoundState, begun
from trimtab.view import Brokers, Bundles, View

_MOST: Final = 1e40
"""Reports within their limits sum to less in any fleet, and products of a few stay finite."""


def plan_urgent(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, View, RoundState]:
    """The urgent part of the plan, the view with it under way, and the state after it."""
    state = begun(state, settings, now_ms)
    obstacle = _obstacle(view, state)
    if obstacle is not None:
        return Plan(skipped=obstacle), view, state
    brokers, state = smooth_averages(view.brokers, state, settings.weights)
    view = replace(view, brokers=brokers)
    approved, asked, wishes = state.approved, OrderedMoves(), list[ShedWish]()
    # While ownership is in doubt, what is not a repair waits.
    if view.trouble.doubt is Doubt.STABLE:
        if state.asked_moves or approved:
            ordered = find_ordered(view, {*state.asked_moves, *approved})
            asked = judge_moves(ordered, view.brokers, state)
        besides = {wish.bundle for wish in asked.wishes}
        drained = view.trouble.draining, view.brokers.names, view.bundles
        wishes = [*asked.wishes, *empty_brokers(*drained, besides)]
        state = replace(state, asked_moves={}, approved={})
    if not (view.trouble.needs or wishes):
        return Plan(refusals=asked.refusals), view, state
    wanted = Wanted(wishes, trouble=view.trouble, spent=len(view.in_flight))
    plan, histories = grant(view, wanted, state, settings, rng)
    # What only a budget has put off is asked for again.
    put_off = {each.bundle for each in plan.refusals if each.rule in SPENT}
    again = {bundle: move for bundle, move in approved.items() if bundle in put_off}
    state = replace(state, histories=histories, approved=state.approved | again)
    plan = replace(plan, refusals=asked.refusals + plan.refusals)
    return plan, carry_out(view, plan), state


def _obstacle(view: View, state: RoundState) -> Rule | None:
    """The rule that forbids doing anything, if one does."""
    if state.paused:
        return Rule.PAUSED
    if view.trouble.doubt is Doubt.UNSTABLE:
        return Rule.DOUBT
    return None if computable(view.brokers, view.bundles) else Rule.UNCOMPUTABLE


def computable(brokers: Brokers, bundles: Bundles) -> bool:
    """Whether strategies can compute on these columns of a view."""
    loads = (brokers.resources, brokers.traffic, bundles.short, bundles.long, bundles.stats)
    # A sum is finite only if every value is, and needs no column of booleans.
    with np.errstate(over="ignore", invalid="ignore"):
        return all(abs(column.sum()) <= _MOST for column in (*loads, brokers.limits))


def smooth_averages(
    brokers: Brokers, state: RoundState, weights: WeightSettings
) -> tuple[Brokers, RoundState]:
    """The brokers with their averages and relief times, and the state without those that left."""
    averages = advance(state.averages, brokers, weights)
    relieved = [state.relieved.get(name, 0) for name in brokers.names]
    brokers = replace(brokers, averages=averages, relieved_ms=np.array(relieved, dtype=np.int64))
    known = {name: at for name, at in zip(brokers.names, relieved, strict=True) if at}
    averages_after = remember_averages(brokers, averages)
    return brokers, replace(state, averages=averages_after, relieved=known)


def carry_out(view: View, plan: Plan) -> View:
    """The view with the plan's moves and assignments under way."""
    broker_of = {move.bundle: move.destination for move in plan.moves}
    broker_of |= {
        repair.bundle: repair.broker
        for repair in plan.repairs
        if repair.event is Event.ASSIGN and repair.broker is not None
    }
    row_of = {name: row for row, name in enumerate(view.brokers.names)}
    intended = view.intended.copy()
    for bundle, row in rows_by_name(view.bundles.names, broker_of).items():
        intended[row] = row_of[broker_of[bundle]]
    return replace(view, intended=intended)
