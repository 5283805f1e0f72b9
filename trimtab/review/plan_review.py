"""One round's review of earlier plans, before it plans and after.

review:  update the model with the new reports
         find which moves have landed, add up what their brokers report
         for each settled plan: report its results, learn from it, and trip the breaker if it did
         harm
note:    predict what this round's moves will do
The model is always the planner's, also while another strategy is active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from trimtab.load import usage
from trimtab.load_model.model import Model, build_model
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.traffic_cost import traffic_of
from trimtab.names import rows_by_name
from trimtab.plan import Move, Plan, Review, ShedWish
from trimtab.reasons import Reason
from trimtab.review.breaker import Ranges, compare_ranges, find_harm, remember_handovers
from trimtab.review.cost_correction import correct_from_plan
from trimtab.review.forecast_miss import ENOUGH, Outcome, count_misses, judge_forecast, stop_s
from trimtab.review.ledger import (
    BrokerReport,
    BundlePlace,
    count_reports,
    due,
    follow_moves,
    list_awaited,
    settle_moves,
)
from trimtab.review.note_prediction import note_prediction
from trimtab.settings import Settings
from trimtab.state.breaker_state import Cause
from trimtab.state.ledger_state import Ledger, MoveOutcome, Noted
from trimtab.state.round_state import RoundState
from trimtab.view import View

_OWN = "trimtab"
"""The strategy that updates the model itself when it is asked."""


class Reviewed(NamedTuple):
    """A round's review of earlier plans, and the state after it."""

    review: Review
    state: RoundState
    undoing: Mapping[str, ShedWish]
    """Bundle to the wish that takes it back, for the moves to undo in this round."""


@dataclass(frozen=True, eq=False)
class PlanReview:
    """Reviews earlier plans in one round."""

    view: View
    settings: Settings
    now_ms: int

    def review(self, state: RoundState) -> Reviewed:
        """The results of earlier plans, and the state with what was learnt from them."""
        settings = self.settings
        frozen = state.breaker.until_ms > 0
        if not settings.ledger.enabled:
            state = replace(state, ledger=replace(state.ledger, plans=()))
            return Reviewed(Review(frozen=frozen), state, {})
        state = replace(state, ledger=self._follow(state.ledger))
        closing = [p for p in state.ledger.plans if due(p, settings, self.now_ms)]
        asked = settings.round.enabled and not frozen
        if closing or not asked or settings.round.shedding != _OWN:
            state = self._learn_reports(state)
        found = Reviewed(Review(frozen=frozen), state, {})
        for plan in closing:
            found = self._close(plan, found)
        return found._replace(review=replace(found.review, awaiting=self._awaits(found.state)))

    def note(self, plan: Plan, state: RoundState) -> tuple[Plan, RoundState]:
        """The plan with the counts of moves given up for it, and the state with its moves noted."""
        settings = self.settings
        if not (plan.moves and settings.ledger.enabled) or settings.round.observe_only:
            return plan, state
        made = note_prediction(plan.moves, self._row_of, self._model(state), self.now_ms, state)
        if made is None:
            return plan, state
        ledger, given_up = state.ledger.having(made)
        if given_up:
            closed = _sum(plan.review.closed, {MoveOutcome.EXPIRED.value: given_up})
            plan = replace(plan, review=replace(plan.review, closed=closed))
        return plan, replace(state, ledger=ledger)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        """The view's row of each broker."""
        return {name: row for row, name in enumerate(self.view.brokers.names)}

    def _learn_reports(self, state: RoundState) -> RoundState:
        """The state with the new reports in the planner's history; `_OWN` does that itself."""
        _, history = observe_fleet(self.view, state.histories.trimtab, self.settings)
        return replace(state, histories=replace(state.histories, trimtab=history))

    def _model(self, state: RoundState) -> Model:
        return build_model(self.view, state.histories.trimtab, self.settings)

    def _follow(self, ledger: Ledger) -> Ledger:
        if not ledger.plans:
            return ledger
        view, settings = self.view, self.settings
        brokers, bundles, intended = view.brokers.names, view.bundles, view.intended
        places = {
            bundle: BundlePlace(brokers[bundles.owner[row]], brokers[intended[row]])
            for bundle, row in rows_by_name(bundles.names, list_awaited(ledger)).items()
        }
        ledger = follow_moves(ledger, places, frozenset(brokers), settings, self.now_ms)
        if not any(plan.ended_ms for plan in ledger.plans):
            return ledger
        columns = (
            view.brokers.reported_ms.tolist(),
            usage(view.brokers.resources, settings.weights).tolist(),
            traffic_of(view.brokers.traffic).tolist(),
        )
        reports = dict(zip(view.brokers.names, map(BrokerReport, *columns), strict=True))
        return count_reports(ledger, reports, settings.ledger.settle)

    def _close(self, plan: Noted, before: Reviewed) -> Reviewed:
        review, state = before.review, before.state
        model = self._model(state)
        ledger, view, settings = state.ledger, self.view, self.settings
        settled, closed = settle_moves(plan, self.now_ms)
        causes: dict[str, str] = {}
        if settings.breaker.enabled and not plan.undoing:
            ranges = compare_ranges(plan, view, model, settings)
            causes = find_harm(plan, ranges, ledger.hand_overs, settings.breaker)
            if settings.round.shedding == _OWN:
                missed, state = self._count_miss(plan, ranges, model, state)
                causes |= missed
        ledger = replace(
            ledger.counting(settled),
            plans=tuple(each for each in ledger.plans if each is not plan),
            hand_overs=remember_handovers(ledger.hand_overs, plan),
        )
        ledger, history = correct_from_plan(plan, ledger, view, model, state.histories.trimtab)
        histories = replace(state.histories, trimtab=history)
        review = replace(
            review,
            settled=(*review.settled, *settled),
            closed=_sum(review.closed, closed),
        )
        state = replace(state, ledger=ledger, histories=histories)
        after = before._replace(review=review, state=state)
        return self._trip(plan, causes, after) if causes else after

    def _awaits(self, state: RoundState) -> bool:
        """Whether a plan must wait until the one before it is judged."""
        open_ = any(not plan.undoing for plan in state.ledger.plans)
        missed = self.settings.breaker.enabled and state.histories.trimtab.misses > 0
        return missed and open_ and self.settings.round.shedding == _OWN

    def _count_miss(
        self, plan: Noted, ranges: Ranges | None, model: Model, state: RoundState
    ) -> tuple[dict[str, str], RoundState]:
        """Count the plan if it missed its forecast.

        Returns the causes to stop planning, by name, if there are too many misses; and the state.
        """
        history, brokers = state.histories.trimtab, self.view.brokers.names
        typical = model.typical(brokers, {b: side.strays for b, side in plan.sides.items()})
        outcome = judge_forecast(plan, typical, ranges)
        misses = count_misses(history.misses, outcome)
        histories = replace(state.histories, trimtab=replace(history, misses=misses))
        state = replace(state, histories=histories)
        if outcome is not Outcome.MISS or misses < ENOUGH:
            return {}, state
        text = f"after round {plan.round} usage missed its forecast, as {misses} recent plans did"
        return {Cause.FORECAST.value: text}, state

    def _trip(self, plan: Noted, causes: dict[str, str], before: Reviewed) -> Reviewed:
        review, state, undoing = before
        settings = self.settings.breaker
        inverse = () if settings.undo == "off" else tuple(self._inverse(plan))
        recent = state.recent
        # More transfers do not help where transfers fail or are slow.
        if settings.undo == "issue" and Cause.RANGE in causes:
            back = {move.bundle: wish for move, wish in inverse}
            undoing = {**undoing, **back}
            recent = {bundle: at for bundle, at in recent.items() if bundle not in back}
        undo = tuple(move for move, _ in inverse)
        found = {
            cause: "; ".join(filter(None, (review.tripped.get(cause), text)))
            for cause, text in causes.items()
        }
        review = replace(
            review, tripped=review.tripped | found, undo=undo + review.undo, frozen=True
        )
        misses = state.histories.trimtab.misses if Cause.FORECAST in causes else 0
        seconds = max(settings.freeze, stop_s(misses, settings.freeze))
        until = self.now_ms + round(1000 * seconds)
        breaker = state.breaker.tripped(causes, until)
        return Reviewed(review, replace(state, breaker=breaker, recent=recent), undoing)

    def _inverse(self, plan: Noted) -> Iterator[tuple[Move, ShedWish]]:
        """The moves that undo the plan, and the wishes for them; the last move first: each source
        had room for its bundle before."""
        view, landed = self.view, plan.landed()
        rows = rows_by_name(view.bundles.names, landed)
        for bundle, move in sorted(landed.items(), key=lambda each: -each[1].place):
            row, back = rows.get(bundle), self._row_of.get(move.source)
            at = self._row_of.get(move.destination, -1)
            if row is not None and back is not None and view.bundles.owner[row] == at:
                epoch = view.epoch(bundle)
                yield (
                    Move(bundle, move.destination, move.source, Reason.UNDONE, epoch),
                    ShedWish(row, at, Reason.UNDONE, back),
                )


def _sum(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(some) + Counter(others))
