"""trimtab's own strategy: chooses source, destination and order of all moves together.

shed(view):
  track every bundle's share of the load, and the cost of traffic on each kind of broker
  predict the usage of every broker after everything in flight has landed
  accept a wider range while brokers come and go one after another
    (`trimtab.planner.fleet_changes`)
  spread the anti-affinity groups (`trimtab.planner.groups`)
  for the brokers of each isolation policy, and those of bundles without a policy:
    move nothing if the range of usage is accepted, or may be chance, or a single bundle forces it,
      or a bundle that does is about to be split (`trimtab.planner.giants`)
    plan the fewest moves that bring the range to the target (`trimtab.planner.search.fewest_moves`)
    on first reports, make only the first of them, as far as the range is surely no noise
      (`trimtab.load_model.first_reports`)
    move nothing if they gain too little (`trimtab.planner.pool_plan`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.in_transit import send_off
from trimtab.plan import ShedWish
from trimtab.planner.constraints import Draft
from trimtab.planner.count_plan import count_plan
from trimtab.planner.fleet_changes import is_waiting, note_moves
from trimtab.planner.giants import forcing, is_awaited, note_giants, splits_giants, stuck
from trimtab.planner.groups import spread_groups
from trimtab.planner.outlook import Prospect, look_ahead
from trimtab.planner.pool_plan import balance
from trimtab.planner.search.ground import BoardMove
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.view import View

__all__ = ["is_learning", "is_waiting", "shed"]


def shed(
    view: View, history: PlannerHistory, settings: Settings
) -> tuple[Sequence[ShedWish], PlannerHistory]:
    """The moves of the plan, in order, each with its destination."""
    outlook, history = look_ahead(view, history, settings)
    fleet, draft, settings = outlook.fleet, outlook.draft, outlook.draft.settings
    brokers, bundles = view.brokers.names, view.bundles.names
    spread_groups(draft)
    spread = len(draft.steps)
    for each in outlook.prospects:
        _plan_pool(draft, each, outlook.unrest, history)
    spreading, balancing = draft.steps[:spread], draft.steps[spread:]
    # A plan that is only shown, or is a first part, makes no later plan wait.
    if balancing and not fleet.on_first_reports and not settings.round.observe_only:
        history = count_plan(outlook, balancing, history)
    moves = {bundles[step.bundle]: brokers[step.destination] for step in draft.steps}
    if moves and not settings.round.observe_only:
        history = note_moves(history, len(balancing), view.now_ms)
        history = replace(
            history,
            sent=send_off(history.sent, moves, view.now_ms),
            shifted=_shifted(brokers, fleet, draft.fleet),
        )
    wishes = [_wish(step, Reason.SPREAD_GROUP) for step in spreading]
    wishes += [_wish(step, Reason.OUT_OF_RANGE) for step in balancing]
    return wishes, note_giants(history, draft)


def is_learning(history: PlannerHistory) -> bool:
    """Whether it may be too early to plan: no bundle was reported twice, so nothing tells load from
    noise; or many brokers have just come, as after a start, and more may follow."""
    return not history.estimates.known or history.filling_ms > 0


def _shifted(names: Sequence[str], before: Fleet, after: Fleet) -> dict[str, float]:
    """Broker to the usage that the draft's moves add."""
    shifted = zip(names, (after.usage - before.usage).tolist(), strict=True)
    return {name: usage for name, usage in shifted if usage}


def _wish(step: BoardMove, reason: Reason) -> ShedWish:
    return ShedWish(step.bundle, step.source, reason, step.destination)


def _plan_pool(draft: Draft, found: Prospect, unrest: float, history: PlannerHistory) -> None:
    """Add the moves of one pool to the draft, and its bundles that should be split."""
    if not splits_giants(draft.settings):
        balance(draft, found, unrest, history)
        return
    giants = forcing(draft, found, history.estimates)
    if not is_awaited(draft, giants, found.pair.hot, history):
        before = len(draft.steps)
        balance(draft, found, unrest, history)
        if found.beyond > 0 and len(draft.steps) == before:
            giants += stuck(draft, found.ground, history.estimates)
    draft.giants += giants
