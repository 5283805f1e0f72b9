"""Each plan makes the next one wait for a wider range, unless it continues an unfinished one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.scenarios import change_scenario, load, run, strategy
from tests.planner.fleets import Carried, ground_of
from tests.planner.views import carrying, later
from trimtab.load_model.history import PlannerHistory
from trimtab.planner import shed
from trimtab.planner.trigger import aim, widest
from trimtab.settings import Settings

SKEWED = carrying({"a": [("t/n", 0.01)] * 60, "b": [("t/n", 0.01)] * 20})


@pytest.mark.parametrize(
    ("changes", "plans"),
    [
        pytest.param({}, 2, id="the load swung back a minute after the first plan"),
        pytest.param({"round.max_moves": 5}, 1, id="a round may move five: the first goes on"),
        pytest.param({"round.max_moves": 5, "round.grace_period": 0}, 2, id="but not for ever"),
    ],
)
def test_plans_within_a_cool_down(changes: dict[str, object], plans: int) -> None:
    settings = Settings().changed(changes)
    history = PlannerHistory()
    for minute in range(3):
        wishes, history = shed(later(SKEWED, minute), history, settings)
        assert wishes
    assert history.unrest == pytest.approx(plans, rel=0.01)


def test_bursts_that_pass_are_left_alone() -> None:
    """The hour before has shown that they pass; to answer them would take some forty moves."""
    scenario = load("bursts", brokers=8, bundles=160, cycles=90, seed=1)
    figures = run(change_scenario(scenario, {"burst.a_day": 8.0}), strategy("trimtab")).figures
    assert figures.moves <= 2


def test_a_broker_that_bursts_bring_near_overload_is_only_brought_below_it() -> None:
    """It is not balanced for a burst that passes."""
    fleet = replace(Carried([[0.3] * 3, [0.1] * 2]).fleet, limit=0.8)
    pair = widest(ground_of(fleet), Settings(), 0.0)
    assert (pair.range, pair.accepted) == pytest.approx((0.7, 0.6))
    assert aim(Settings(), 0.0, pair.accepted, relieving=True) == pytest.approx(0.588)
    assert widest(ground_of(replace(fleet, limit=0.0)), Settings(), 0.0).accepted < 0.1
