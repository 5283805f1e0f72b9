"""What a plan counts, by what the fleet went through when it was made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import INTERVAL_MS, carrying, later
from trimtab.load_model.estimating.leap_record import LeapRecord, open_leaps
from trimtab.load_model.history import PlannerHistory
from trimtab.planner.count_plan import count_plan
from trimtab.planner.outlook import look_ahead
from trimtab.planner.search.ground import BoardMove
from trimtab.settings import Settings

SKEWED = carrying({"a": [("t/n", 0.01)] * 60, "b": [("t/n", 0.01)] * 20})


@pytest.mark.parametrize(
    ("struck", "limit", "counted"),
    [
        pytest.param(0, 0.0, 1.0, id="one that answers a load that swings makes the next wait"),
        pytest.param(3, 0.0, 0.0, id="an event is no swing"),
        pytest.param(0, 0.8, 0.0, id="nor is a burst that brings a broker near overload"),
    ],
)
def test_a_plan_counts_by_what_it_answers(struck: int, limit: float, counted: float) -> None:
    outlook, history = look_ahead(SKEWED, PlannerHistory(), Settings())
    outlook = replace(outlook, fleet=replace(outlook.fleet, struck=struck, limit=limit))
    assert count_plan(outlook, [BoardMove(0, 0, 1)], history).unrest == counted


@pytest.mark.parametrize(
    ("limit", "counted"),
    [
        pytest.param(0.8, 0.0, id="a relief balances nothing: what follows goes on with it"),
        pytest.param(0.0, 1.0, id="any other plan corrects the one before it"),
    ],
)
def test_a_plan_within_the_cool_down_of_a_relief_continues_it(limit: float, counted: float) -> None:
    outlook, history = look_ahead(SKEWED, PlannerHistory(), Settings())
    relieving = replace(outlook, fleet=replace(outlook.fleet, limit=limit))
    history = replace(count_plan(relieving, [BoardMove(0, 0, 1)], history), unrest=0.0)
    later_outlook, history = look_ahead(later(SKEWED, 1), history, Settings())
    steps = [BoardMove(row, 0, 1) for row in range(1, 4)]
    assert count_plan(later_outlook, steps, history).unrest == counted


@pytest.mark.parametrize(
    ("bundles", "as_reported", "counted"),
    [
        pytest.param(20, 0, 0.0, id="an event that the last plan knew"),
        pytest.param(0, 0, 1.0, id="none"),
        pytest.param(20, 1, 1.0, id="what leaps together may be none where counters err"),
    ],
)
def test_a_plan_that_goes_on_with_an_event_counts_with_the_first(
    bundles: int, as_reported: int, counted: float
) -> None:
    """They leapt 45 minutes ago, and the last plan was made a minute later."""
    outlook, history = look_ahead(SKEWED, PlannerHistory(), Settings())
    outlook = replace(outlook, fleet=replace(outlook.fleet, as_reported=as_reported))
    now_ms, levels = SKEWED.now_ms, (np.full(bundles, 0.001), np.full(bundles, 0.003))
    since_ms = np.full(bundles, now_ms - 45 * INTERVAL_MS)
    leaps = open_leaps(LeapRecord(), np.arange(bundles, dtype=np.uint64), levels, since_ms)
    history = replace(
        history,
        leaps=leaps,
        planned_ms=now_ms - 44 * INTERVAL_MS,
        since_ms=dict.fromkeys(SKEWED.brokers.names, now_ms - 200 * INTERVAL_MS),
    )
    assert count_plan(outlook, [BoardMove(0, 0, 1)], history).unrest == counted
