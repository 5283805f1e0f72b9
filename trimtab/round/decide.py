"""One decision for one cluster: strategies propose, the round decides.

decide(view, state, settings, now, rng):
  count the round; forget moves older than the grace period
  stop with a reason if it is paused, nothing can be believed, or the view cannot be computed
  advance the brokers' averages by the new reports
  repair what is broken; wish every bundle off the brokers that are draining
  stop with a reason if it is in doubt, or has fewer than two brokers
  hide from the strategies unavailable brokers
  review earlier plans; if one did harm, ask no shedder for a while, and perhaps undo its moves;
  with shedding off ask no shedder, and undo nothing
  grant or refuse the splits and merges that people order
  hide from the strategies also bundles cooling down, in flight, pinned, or to be split or merged
  ask the split trigger, then the merger; these bundles do not move either
  wish for a new place for the children of splits, then ask the shedder
  for each wish, in order:
    refuse it if it repeats a bundle, is not movable, would take a broker's last bundle where no
    other wish brings one, or is over budget; find it a broker, or refuse it; note the move, so that
    the next wish sees it
  where all waits for a person or a window, the strategies are asked as if observing, and the plan
    holds what they want
  where some namespaces wait, their bundles stay, and a plan for them alone is made after this one
  note what the moves are predicted to do
repair_only(...): only as far as repairs and drains
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import Bools
from trimtab.doubt import Doubt
from trimtab.load import usage
from trimtab.plan import Plan, Review
from trimtab.reasons import Rule
from trimtab.review.plan_review import PlanReview
from trimtab.round.holding import find_holding
from trimtab.round.idle import find_idle_rule
from trimtab.round.regular import Asked, plan_regular
from trimtab.round.urgent import plan_urgent
from trimtab.settings import Settings, WeightSettings
from trimtab.state.hand_overs import Budgets
from trimtab.state.round_state import RoundState, start_cooldowns
from trimtab.view import Brokers, View, available_part

MIN_BROKERS: Final = 2
"""With fewer there is no other broker to move to."""


def decide(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, RoundState]:
    """The round's plan and the state after it; the caller seeds ``rng`` from (cluster, round)."""
    standstill = _standstill(view.trouble.doubt, view.brokers.available)
    urgent, view, state = plan_urgent(view, state, settings, now_ms, rng)
    skipped = urgent.skipped or standstill
    if skipped is not None:
        plan = replace(urgent, skipped=skipped)
        return _finish(plan, view, state, settings, now_ms)
    view = available_part(view)
    reviewer = PlanReview(view, settings, now_ms)
    review, state, undoing = reviewer.review(state)
    unasked = _unasked(review, settings)
    # Where shedding is off, not even the breaker moves bundles.
    undone = () if unasked is Rule.DISABLED else tuple(undoing.values())
    holding = find_holding(view.bundles, view.controls, settings, now_ms)
    asked = Asked(holding, undone if unasked else None, urgent.moves)
    regular, state = plan_regular(view, state, settings, rng, asked)
    plan = replace(
        urgent,
        moves=urgent.moves + regular.moves,
        refusals=urgent.refusals + regular.refusals,
        splits=regular.splits,
        merges=regular.merges,
        skipped=unasked,
        review=review,
        held=regular.held,
    )
    plan, state = reviewer.note(plan, state)
    return _finish(plan, view, state, settings, now_ms)


def repair_only(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, RoundState]:
    """Hold a round between two regular ones, for what cannot wait."""
    plan, view, state = plan_urgent(view, state, settings, now_ms, rng)
    plan = replace(plan, skipped=plan.skipped or Rule.REPAIR_ONLY)
    return _finish(plan, view, state, settings, now_ms)


def _standstill(doubt: Doubt, available: Bools) -> Rule | None:
    """The rule that forbids more than urgent changes, if one does."""
    if doubt is not Doubt.STABLE:
        return Rule.DOUBT
    if np.count_nonzero(available) < MIN_BROKERS:
        return Rule.TOO_FEW_BROKERS
    return None


def _unasked(review: Review, settings: Settings) -> Rule | None:
    """The rule by which no shedder is asked, if there is one; splits and merges go on."""
    if not settings.round.enabled:
        return Rule.DISABLED
    if review.frozen:
        return Rule.FROZEN
    return Rule.AWAITING_OUTCOME if review.awaiting else None


def _finish(
    plan: Plan, view: View, state: RoundState, settings: Settings, now_ms: int
) -> tuple[Plan, RoundState]:
    """The plan with its summary, and the state in which its moves count, if they are carried
    out."""
    summary = _summarise(view.brokers, len(view.bundles.names), settings.weights)
    plan = replace(plan, summary=summary)
    if not (plan.skipped or plan.changes or plan.refusals or plan.held):
        plan = replace(plan, skipped=find_idle_rule(plan, state, settings, now_ms))
    if settings.round.observe_only:
        return plan, state
    budgets = Budgets(settings.plans, view.controls, state.handed, now_ms)
    state = replace(state, handed=budgets.after(move.bundle for move in plan.moves))
    return plan, start_cooldowns(plan, state, now_ms)


def _summarise(brokers: Brokers, bundles: int, weights: WeightSettings) -> dict[str, float]:
    """Counts of brokers and bundles, and usage figures if usage is known and finite."""
    loads = usage(brokers.resources, weights)[brokers.available]
    figures = {"brokers": float(len(loads)), "bundles": float(bundles)}
    if loads.size and np.isfinite(loads).all():
        low, high = float(loads.min()), float(loads.max())
        mean = float(loads.mean())
        figures |= {
            "usage_min": low,
            "usage_mean": mean,
            "usage_max": high,
            "usage_range": high - low,
            "usage_deviation": float(loads.std()),
        }
    return figures
