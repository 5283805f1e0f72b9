"""What a plan counts, by what the fleet went through when it was made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.planner.views import carrying
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
