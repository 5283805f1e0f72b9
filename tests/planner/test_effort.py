"""Effort bounds what is tried for a plan, in fleets of any size and from any start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.planner.fleets import fleet_of, ground_of, keeps, plan, usage_after
from tests.planner.views import carrying, later
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.planner import shed
from trimtab.planner.search import fewest_moves
from trimtab.planner.search.bands import HABITS, Habit, run_trial
from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Band, BoardMove
from trimtab.planner.search.outsized import send_misplaced
from trimtab.planner.search.trial import Trial
from trimtab.settings import Settings

TARGET = 0.05
LITTLE = 1_000
"""The least effort that settings allow: a hundred steps a trial, or two a broker."""


def crowded(brokers: int, bundles: int, hosts: int) -> Fleet:
    """The first ``hosts`` brokers carry everything."""
    rng = np.random.default_rng(1)
    size = 0.5 + rng.random(bundles)
    size *= 0.45 * brokers / size.sum()
    return fleet_of(size, rng.integers(0, hosts, bundles), np.ones(brokers))


def moved(fleet: Fleet, steps: Sequence[BoardMove]) -> Fleet:
    where = fleet.where.copy()
    for step in steps:
        where[step.bundle] = step.destination
    return fleet_of(fleet.size, where, fleet.gain)


@pytest.mark.parametrize("habit", HABITS)
def test_a_trial_ends_with_its_effort(habit: Habit) -> None:
    fleet = crowded(20, 2_000, 10)
    trial = run_trial(ground_of(fleet), keeps(fleet), Band(0.4, 0.5), habit, 50)
    assert trial.effort <= 51
    assert len(trial.steps) <= 51
    assert trial.cut
    assert trial.range <= np.ptp(fleet.usage)


def test_misplaced_bundles_count_as_effort() -> None:
    """200 weak brokers have one each; to look at 400 brokers for it counts five steps."""
    gain = np.repeat([1.0, 0.1], 200)
    fleet = fleet_of(np.full(400, 1.5), np.tile(np.arange(200), 2), gain)
    board = Board(ground_of(fleet), keeps(fleet))
    send_misplaced(board, ground_of(fleet), Band(0.2, 0.6), 50)
    assert len(board.steps) == 10


def test_plans_that_are_cut_short_reach_the_target_one_after_the_other() -> None:
    fleet = crowded(20, 2_000, 10)
    for _ in range(40):
        found = plan(fleet, TARGET, LITTLE)
        assert len(found.steps) <= 101
        assert found.range < np.ptp(fleet.usage)
        fleet = moved(fleet, found.steps)
        if np.ptp(fleet.usage) <= TARGET:
            return
    raise AssertionError(f"still {np.ptp(fleet.usage):.3f}")


def test_a_large_fleet_gets_two_steps_a_broker_however_little_the_effort() -> None:
    """With fewer the hottest of many alike would stay, and the range with them."""
    fleet = fleet_of(np.full(3_000, 0.02), np.repeat(np.arange(100), 30), np.ones(200))
    found = plan(fleet, TARGET, LITTLE)
    assert found.cut
    assert np.ptp(usage_after(fleet, found.steps)) < np.ptp(fleet.usage)


def test_a_plan_that_was_cut_short_is_made_though_it_gains_little() -> None:
    view = carrying({"a": [("t/0", 0.0001)] * 8_000, "b": [("t/1", 0.0001)] * 100})
    settings = Settings.parse({"planner.effort": LITTLE})
    _, history = shed(view, PlannerHistory(), settings)
    wishes, _ = shed(later(view, 1), history, settings)
    assert 0 < len(wishes) <= 101


def test_few_trials_are_made_where_none_helps_and_the_effort_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each broker of 300 has one bundle, which stays: otherwise 450 trials would be made."""
    made = list[Trial]()

    def counted(*args: object) -> Trial:
        made.append(run_trial(*args))  # type: ignore[arg-type]  # the same arguments
        return made[-1]

    monkeypatch.setattr(fewest_moves, "run_trial", counted)
    fleet = fleet_of(np.linspace(0.1, 0.9, 300), np.arange(300), np.ones(300))
    assert plan(fleet, TARGET, LITTLE).steps == ()
    assert len(made) <= len(HABITS)
