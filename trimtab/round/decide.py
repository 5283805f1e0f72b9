"""One decision for one cluster: strategies propose, the round decides.

decide(view, state, settings, now, rng):
  count the round; forget moves older than the grace period
  stop with a reason if it is paused, nothing can be believed, or the view cannot be computed
  advance the brokers' averages by the new reports
  repair what is broken; wish every bundle off the brokers that are draining
  stop with a reason if it is disabled, in doubt, or has fewer than two brokers
  hide from the strategies unavailable brokers, and bundles cooling down or in flight
  review earlier plans; if one did harm, ask no shedder for a while, and perhaps undo its moves
  ask the split trigger, then the merger; bundles to be split or merged do not move
  wish for a new place for the children of splits, then ask the shedder
  for each wish, in order:
    refuse it if it repeats a bundle, is not movable, would take a broker's last bundle where no
    other wish brings one, or is over budget; find it a broker, or refuse it; note the move, so that
    the next wish sees it
  note what the moves are predicted to do
mend(...): only as far as repairs and drains
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.doubt import Doubt
from trimtab.filters.request import Projection
from trimtab.merging import plan_merges
from trimtab.names import rows_of
from trimtab.placement import PLACERS
from trimtab.plan import MOST_AT_ONCE, Plan, Refusal, ShedWish, Split, SplitWish, parts_of
from trimtab.reasons import Reason, Rule
from trimtab.review.plan_review import PlanReview
from trimtab.round.disposal import Disposal
from trimtab.round.idle import find_idle_rule
from trimtab.round.repair_placement import RepairPlacement
from trimtab.round.view_edits import (
    carry_out,
    computable,
    hold_recent,
    smooth_averages,
    staying,
    summary,
)
from trimtab.settings import Settings
from trimtab.shedding import STRATEGIES
from trimtab.splitting.triggers import TRIGGERS
from trimtab.state.round_state import RoundState, begun, start_cooldowns
from trimtab.view import View, available_part

MIN_BROKERS: Final = 2
"""With fewer there is no other broker to move to."""


class Wishes(NamedTuple):
    """The wishes to decide on, and how much of the budget urgent moves have used."""

    wanted: Sequence[ShedWish]
    spent: int


def decide(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, RoundState]:
    """The round's plan and the state after it; the caller seeds ``rng`` from (cluster, round)."""
    urgent, view, state = _urgent(view, state, settings, now_ms, rng)
    skipped = urgent.skipped or _standstill(view, settings)
    if skipped is not None:
        return _finish(replace(urgent, skipped=skipped), view, state, settings, now_ms)
    seen = available_part(view)
    reviewer = PlanReview(seen, settings, now_ms)
    review, state = reviewer.review(state)
    seen = hold_recent(seen, state.recent)
    wished, state = _ask_trigger(seen, state, settings)
    whole = tuple(_refuse_split(seen, each, each.hindered) for each in wished if each.hindered)
    wished = [wish for wish in wished if not wish.hindered][:MOST_AT_ONCE]
    splits = tuple(_split(seen, wish) for wish in wished)
    seen = staying(seen, [wish.bundle for wish in wished])
    seen = replace(seen, splitting=seen.splitting.union(split.bundle for split in splits))
    merges = plan_merges(seen, settings)[:MOST_AT_ONCE]
    seen = staying(seen, rows_of(seen.bundles.names, parts_of(merges)))
    wanted: Sequence[ShedWish] = reviewer.back()
    if not review.frozen:
        wanted, state = _ask_shedder(seen, state, settings)
    plan, state = _plan_moves(seen, state, settings, rng, Wishes(wanted, len(urgent.moves)))
    plan = Plan(
        moves=urgent.moves + plan.moves,
        refusals=urgent.refusals + whole + plan.refusals,
        splits=splits,
        merges=merges,
        repairs=urgent.repairs,
        postponed=urgent.postponed,
        skipped=Rule.FROZEN if review.frozen else None,
        review=review,
    )
    if not (review.frozen or plan.changes or plan.refusals):
        plan = replace(plan, skipped=find_idle_rule(seen, state, settings))
    plan, state = reviewer.note(plan, state)
    return _finish(plan, seen, state, settings, now_ms)


def repair_only(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, RoundState]:
    """Hold a round between two regular ones, for what cannot wait."""
    plan, view, state = _urgent(view, state, settings, now_ms, rng)
    plan = replace(plan, skipped=plan.skipped or Rule.REPAIR_ONLY)
    return _finish(plan, view, state, settings, now_ms)


def _urgent(
    view: View, state: RoundState, settings: Settings, now_ms: int, rng: np.random.Generator
) -> tuple[Plan, View, RoundState]:
    """Repairs, and moves off draining brokers; the view as it will be after them."""
    state = begun(state, settings, now_ms)
    obstacle = _obstacle(view, state)
    if obstacle is not None:
        return Plan(skipped=obstacle), view, state
    view, state = smooth_averages(view, state, settings)
    wishes = _drained(view)
    if not (view.trouble.needs or wishes):
        return Plan(), view, state
    name, projection = settings.round.placement, Projection(view)
    placer = PLACERS[name](view, projection, state.histories.of(name), settings)
    placing = RepairPlacement(view, projection, placer, settings, rng)
    repairs, postponed = placing.repairs(view.trouble.needs)
    disposal = Disposal(view, projection, placer, settings, rng)
    under_way = int(np.count_nonzero(view.intended != view.bundles.owner))
    plan = disposal.plan(wishes, (), under_way)
    plan = replace(plan, repairs=repairs, postponed=postponed)
    histories = state.histories.having(name, placer.remembered())
    return plan, carry_out(view, plan), replace(state, histories=histories)


def _drained(view: View) -> list[ShedWish]:
    """A wish for each movable bundle of a draining broker."""
    trouble, bundles = view.trouble, view.bundles
    if not trouble.draining or trouble.doubt is not Doubt.STABLE:
        return []
    emptied = np.array([name in trouble.draining for name in view.brokers.names], dtype=np.bool_)
    rows = np.flatnonzero(bundles.movable & emptied[bundles.owner]).tolist()
    return [ShedWish(row, int(bundles.owner[row]), Reason.DRAINED) for row in rows]


def _finish(
    plan: Plan, view: View, state: RoundState, settings: Settings, now_ms: int
) -> tuple[Plan, RoundState]:
    plan = replace(plan, summary=summary(view, settings))
    return plan, state if settings.round.observe_only else start_cooldowns(plan, state, now_ms)


def _ask_trigger(
    view: View, state: RoundState, settings: Settings
) -> tuple[Sequence[SplitWish], RoundState]:
    if not settings.split.enabled:
        return (), state
    name = settings.split.trigger
    wished, history = TRIGGERS[name](view, state.histories.of(name), settings)
    return wished, replace(state, histories=state.histories.having(name, history))


def _refuse_split(view: View, wish: SplitWish, rule: Rule) -> Refusal:
    bundle = view.bundles.names[wish.bundle]
    return Refusal(bundle, view.brokers.names[view.bundles.owner[wish.bundle]], rule)


def _split(view: View, wish: SplitWish) -> Split:
    bundle = view.bundles.names[wish.bundle]
    return Split(
        bundle=bundle,
        broker=view.brokers.names[view.bundles.owner[wish.bundle]],
        reason=wish.reason,
        epoch=view.epoch(bundle),
    )


def _ask_shedder(
    view: View, state: RoundState, settings: Settings
) -> tuple[Sequence[ShedWish], RoundState]:
    """The shedding strategy's wishes."""
    name = settings.round.shedding
    strategy = STRATEGIES[name]
    history = state.histories.of(name, strategy.history)
    wanted, history = strategy.shed(view, history, settings)
    histories = state.histories.having(name, history, strategy.history)
    return wanted, replace(state, histories=histories)


def _plan_moves(
    view: View, state: RoundState, settings: Settings, rng: np.random.Generator, given: Wishes
) -> tuple[Plan, RoundState]:
    children, waiting = _child_wishes(view, state.halves)
    if STRATEGIES[settings.round.shedding].places_children:
        children = []
    wishes, histories = [*children, *given.wanted], state.histories
    plan = Plan()
    if wishes:
        name, projection = settings.round.placement, Projection(view)
        placer = PLACERS[name](view, projection, histories.of(name), settings)
        disposal = Disposal(view, projection, placer, settings, rng)
        plan = disposal.plan(wishes, state.recent, given.spent)
        histories = histories.having(name, placer.remembered())
    return plan, replace(state, histories=histories, halves=waiting)


def _child_wishes(view: View, waiting: Mapping[str, int]) -> tuple[list[ShedWish], dict[str, int]]:
    """A wish for each child that its owner reports by now, and the children still awaited."""
    if not waiting:
        return [], {}
    bundles = view.bundles
    row_of = {bundles.names[row]: row for row in rows_of(bundles.names, waiting)}
    owners = bundles.owner.tolist()
    wishes = [
        ShedWish(row, owners[row], Reason.DIVIDED, or_stay=True)
        for row in row_of.values()
        if bundles.movable[row]
    ]
    return wishes, {name: since for name, since in waiting.items() if name not in row_of}


def _obstacle(view: View, state: RoundState) -> Rule | None:
    """The rule that forbids doing anything, if one does."""
    if state.paused:
        return Rule.PAUSED
    if view.trouble.doubt is Doubt.UNSTABLE:
        return Rule.DOUBT
    return None if computable(view) else Rule.UNCOMPUTABLE


def _standstill(view: View, settings: Settings) -> Rule | None:
    """The rule that forbids more than urgent changes, if one does."""
    if not settings.round.enabled:
        return Rule.DISABLED
    if view.trouble.doubt is not Doubt.STABLE:
        return Rule.DOUBT
    if np.count_nonzero(view.brokers.available) < MIN_BROKERS:
        return Rule.TOO_FEW_BROKERS
    return None
