"""What is accepted: the target, and more after recent plans or where chance explains it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.fleets import Carried, ground_of
from tests.planner.views import carrying
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.wariness import find_slack, find_tolerated_range
from trimtab.planner.trigger import widest
from trimtab.settings import Settings


@pytest.mark.parametrize(
    ("target", "unrest", "accepted"),
    [
        (0.02, 1.0, 0.02),
        (0.02, 100.0, 0.06),
        (0.05, 1.0, 0.05),
        (0.05, 3.0, 0.125),
        (0.05, 100.0, 0.15),
        (0.08, 2.0, 0.1175),
        (0.08, 100.0, 0.15),
        (0.15, 100.0, 0.15),
        (0.2, 100.0, 0.2),
    ],
)
def test_recent_plans_widen_by_no_more_than_for_a_balanced_target_nor_beyond_a_calm_one(
    target: float, unrest: float, accepted: float
) -> None:
    settings = Settings.parse({"planner.target": target})
    assert find_tolerated_range(settings, unrest) == pytest.approx(accepted)


@pytest.mark.parametrize("target", [0.02, 0.05, 0.15])
@pytest.mark.parametrize("unrest", [0.0, 2.0, 100.0])
def test_a_range_as_wide_as_after_many_plans_is_always_seen(target: float, unrest: float) -> None:
    """Two brokers may both be off by the slack."""
    settings = Settings.parse({"planner.target": target})
    hidden = find_tolerated_range(settings, unrest) + 2 * find_slack(settings, unrest)
    assert hidden == pytest.approx(find_tolerated_range(settings, 100.0))


@pytest.mark.parametrize(
    ("struck", "just_planned", "accepted"),
    [
        pytest.param(False, False, 0.229, id="chance alone"),
        pytest.param(True, False, 0.05, id="an event: the target counts"),
        pytest.param(True, True, 0.055, id="a plan that follows another waits for a tenth more"),
    ],
)
def test_what_is_accepted_where_chance_explains_more_than_the_target(
    struck: bool, just_planned: bool, accepted: float
) -> None:
    """Three deviations a broker; each sample after an event tells a little more of the loads, and
    for that alone bundles would move one after the other."""
    noisy = Carried([[0.3] * 2, [0.2] * 2]).fleet
    fleet = replace(noisy, variance=np.full(2, 0.03**2), struck=struck, just_planned=just_planned)
    assert widest(ground_of(fleet), Settings(), 1.0).accepted == pytest.approx(accepted, abs=2e-3)


def test_a_hot_broker_may_owe_its_usage_to_a_burst_that_was_not_seen_to_begin() -> None:
    fleet = Carried([[0.3] * 2, [0.2] * 2]).fleet
    fleet = replace(fleet, variance=np.full(2, 0.03**2), hidden=np.array([0.1, 0.2]))
    accepted = widest(ground_of(fleet), Settings(), 1.0).accepted
    assert accepted == pytest.approx(0.329, abs=2e-3)


@pytest.mark.parametrize(
    ("ago_s", "just_planned"), [(None, False), (0, True), (60, True), (1799, True), (1800, False)]
)
def test_a_plan_was_made_of_late_as_long_as_its_cool_down_lasts(
    ago_s: int | None, just_planned: bool
) -> None:
    view = carrying({"a": [("t/n", 0.05)], "b": [("t/n", 0.05)]})
    history = PlannerHistory()
    if ago_s is not None:
        history = replace(history, planned_ms=view.now_ms - 1000 * ago_s)
    assert observe_fleet(view, history, Settings())[0].just_planned == just_planned
