"""A plan whose outcome misses its forecast makes the next one smaller, and the third one stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import carrying, later
from tests.support.clusters import NOW_MS, cluster
from trimtab.cluster.intents.apply import apply_intent
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.resources.costs import Costs
from trimtab.planner import shed
from trimtab.reasons import Rule
from trimtab.review.breaker import Ranges
from trimtab.review.forecast_miss import ENOUGH, Outcome, count_misses, judge_forecast, stop_s
from trimtab.review.plan_review import PlanReview
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.ledger_state import Awaited, Ledger, MoveOutcome, Noted, Side
from trimtab.state.memory import Memory, put_together, set_apart
from trimtab.state.round_state import Histories, RoundState, begun
from trimtab.wire.intent import Intent, IntentKind

MOVED = 0.1
"""What both sides were to change by."""
FREEZE_S = 600.0


def side(change: float, surprise: float = 0.0, strays: float = 0.0, doubt: float = 0.0) -> Side:
    """A side after one report, of a broker that was at 50 %."""
    return Side(
        before=0.5,
        predicted=0.5 + change,
        variance=0.0,
        cost=1.0,
        correction=1.0,
        used_then=0.5,
        traffic_then=0.5,
        strays=strays,
        doubt=doubt,
        reported_ms=NOW_MS,
        reports=1,
        used=0.5 + change + surprise,
        traffic=0.5 + change,
    )


def settled(surprise: float, strays: float = 0.0) -> Noted:
    """A plan that took a tenth from a to b, which surprises."""
    move = Awaited("a", "b", MOVED, MOVED, outcome=MoveOutcome.LANDED)
    sides = {"a": side(-MOVED), "b": side(MOVED, surprise, strays)}
    return Noted(1, NOW_MS - 300_000, {"x": move}, sides, ended_ms=NOW_MS - 200_000)


@pytest.mark.parametrize(
    ("surprise", "strays", "outcome"),
    [
        pytest.param(0.0, 0.0, Outcome.HIT, id="as forecast"),
        pytest.param(0.09, 0.0, Outcome.HIT, id="off by less than half of both changes"),
        pytest.param(0.11, 0.0, Outcome.MISS, id="off by more"),
        pytest.param(-0.11, 0.0, Outcome.MISS, id="too little is a miss too"),
        pytest.param(0.11, 0.03, Outcome.UNCLEAR, id="chance may do that, and hides what is true"),
        pytest.param(0.4, 0.03, Outcome.MISS, id="but not that"),
    ],
)
def test_usage_of_touched_brokers(surprise: float, strays: float, outcome: Outcome) -> None:
    assert judge_forecast(settled(surprise, strays), 0.0, None) is outcome


def test_a_forecast_that_was_in_doubt_is_not_missed_within_its_doubt() -> None:
    plan = settled(0.15)
    assert judge_forecast(plan, 0.0, None) is Outcome.MISS
    doubted = replace(plan, sides=plan.sides | {"b": side(MOVED, 0.15, doubt=0.05)})
    assert judge_forecast(doubted, 0.0, None) is Outcome.UNCLEAR
    doubted = replace(plan, sides=plan.sides | {"b": side(MOVED, 0.3, doubt=0.05)})
    assert judge_forecast(doubted, 0.0, None) is Outcome.MISS


@pytest.mark.parametrize(
    ("ranges", "outcome"),
    [
        pytest.param(Ranges(0.05, 0.25, 0.05, 0.0), Outcome.HIT, id="as forecast"),
        pytest.param(Ranges(0.14, 0.25, 0.05, 0.0), Outcome.HIT, id="more than half is gained"),
        pytest.param(Ranges(0.16, 0.25, 0.05, 0.0), Outcome.MISS, id="less is"),
        pytest.param(Ranges(0.16, 0.25, 0.05, 0.2), Outcome.HIT, id="within chance"),
    ],
)
def test_range_of_usage(ranges: Ranges, outcome: Outcome) -> None:
    assert judge_forecast(settled(0.0), 0.0, ranges) is outcome


def test_stops_double_and_a_hit_halves_the_count() -> None:
    counts = [0]
    for _ in range(5):
        counts.append(count_misses(counts[-1], Outcome.MISS))
    assert [stop_s(count, FREEZE_S) for count in counts] == [0, 0, 0, 3600, 7200, 14_400]
    assert count_misses(5, Outcome.HIT) == 2
    assert count_misses(2, Outcome.UNCLEAR) == 2


@pytest.mark.parametrize("misses", [0, 1])
def test_a_miss_halves_the_way_that_the_next_plan_goes(misses: int) -> None:
    view = carrying({"a": [("t/n", 0.01)] * 60, "b": [("t/n", 0.01)] * 20})
    _, history = shed(view, PlannerHistory(), Settings())
    wishes, _ = shed(later(view, 1), replace(history, misses=misses), Settings())
    assert len(wishes) == (9 if misses else 18)


def reviewed(surprise: float, misses: int) -> tuple[Rule | None, RoundState]:
    """The round that settles a plan after so many misses."""
    view = replace(cluster(a=0.5, b=0.5), now_ms=NOW_MS)
    histories = Histories(trimtab=PlannerHistory(misses=misses))
    state = RoundState(histories=histories, ledger=Ledger((settled(surprise),)))
    settings = Settings().changed({"round.shedding": "trimtab"})
    plan, state = decide(view, state, settings, NOW_MS, np.random.default_rng(1))
    return plan.skipped, state


def test_the_third_miss_stops_planning_for_an_hour_and_says_so() -> None:
    skipped, state = reviewed(0.3, ENOUGH - 1)
    assert skipped is Rule.FROZEN
    assert state.breaker.until_ms == NOW_MS + 3_600_000
    assert "missed-forecasts" in state.breaker.trips
    assert "usage missed its forecast, as 3 recent plans did" in state.breaker.found[-1]


def test_a_hit_stops_nothing() -> None:
    skipped, state = reviewed(0.0, ENOUGH - 1)
    assert skipped is not Rule.FROZEN
    assert state.histories.trimtab.misses == 1


@pytest.mark.parametrize(("misses", "awaits"), [(0, False), (1, True)])
def test_after_a_miss_the_next_plan_waits_for_the_outcome_of_the_last(
    misses: int, awaits: bool
) -> None:
    view = cluster(a=0.5, b=0.5)
    move = Awaited("a", "b", MOVED, MOVED)
    noted = Noted(1, NOW_MS, {"x": move}, {"a": side(-MOVED), "b": side(MOVED)})
    histories = Histories(trimtab=PlannerHistory(misses=misses))
    settings = Settings().changed({"round.shedding": "trimtab"})
    state = RoundState(histories=histories, ledger=Ledger((noted,)))
    review = PlanReview(view, settings, NOW_MS).review(state).review
    assert review.awaiting is awaits


def test_an_operator_that_resumes_forgives_the_misses() -> None:
    """Also where the job keeps what rounds have learnt apart from what intents change."""
    histories = Histories(trimtab=PlannerHistory(misses=4))
    memory, learnt = set_apart(Memory(round=RoundState(histories=histories)))
    resume = Intent(id="1", kind=IntentKind.RESUME, cluster="c")
    resumed = apply_intent(memory, resume, Settings(), 0, 0).memory
    begins = begun(put_together(resumed, learnt).round, Settings(), 0)
    assert (begins.histories.trimtab.misses, begins.forgiven) == (0, False)
    missed = begun(replace(begins, histories=histories), Settings(), 1)
    assert missed.histories.trimtab.misses == 4


def test_no_plan_is_judged_by_weights_that_it_was_not_made_with() -> None:
    view, settings = cluster(a=0.5, b=0.5), Settings()
    _, history = observe_fleet(view, PlannerHistory(misses=2), settings)
    noted = Noted(1, NOW_MS, {"x": Awaited("a", "b", MOVED, MOVED)}, {})
    first = RoundState(histories=Histories(trimtab=history), ledger=Ledger((noted,)))

    same = begun(begun(first, settings, 1), settings, 2)
    assert same.ledger.plans == (noted,)
    assert same.histories.trimtab == history

    weighed = begun(same, settings.changed({"weights.cpu": 2.0}), 3)
    assert weighed.ledger.plans == ()
    learnt = weighed.histories.trimtab
    assert (learnt.misses, learnt.costs, learnt.foreseen) == (0, Costs(), {})
    assert learnt.estimates is history.estimates
