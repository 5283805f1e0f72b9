"""What cannot wait: repairs, moves that people ask for or approve, moves off draining brokers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.doubt import Doubt
from trimtab.names import rows_by_name
from trimtab.ownership import Event
from trimtab.plan import Plan, ShedWish
from trimtab.reasons import Reason, Rule
from trimtab.round.disposal import Wanted, grant
from trimtab.round.ordered_moves import OrderedMoves, keep_unspent, take_ordered_moves
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
    before, ordered = state, OrderedMoves()
    wishes: list[ShedWish] = []
    # While ownership is in doubt, what is not a repair waits.
    if view.trouble.doubt is Doubt.STABLE:
        if state.asked_moves or state.approved:
            ordered, state = take_ordered_moves(view, state)
        wishes = [*ordered.wishes, *_drains(view, {wish.bundle for wish in ordered.wishes})]
    if not (view.trouble.needs or wishes):
        return Plan(refusals=ordered.refusals), view, state
    wanted = Wanted(wishes, trouble=view.trouble, spent=len(view.in_flight))
    plan, histories = grant(view, wanted, state, settings, rng)
    state = keep_unspent(plan, before, replace(state, histories=histories))
    plan = replace(plan, refusals=ordered.refusals + plan.refusals)
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


def _drains(view: View, besides: Collection[int]) -> list[ShedWish]:
    """A wish for each movable bundle of a draining broker, without the rows ``besides``."""
    trouble, bundles = view.trouble, view.bundles
    if not trouble.draining:
        return []
    emptied = np.array([name in trouble.draining for name in view.brokers.names], dtype=np.bool_)
    rows = np.flatnonzero(bundles.movable & emptied[bundles.owner]).tolist()
    return [
        ShedWish(row, int(bundles.owner[row]), Reason.DRAINED) for row in rows if row not in besides
    ]


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
