"""Effort bounds what is tried for a plan, in fleets of any size and from any start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.planner.brute import ALIKE
from tests.planner.fleets import Carried, fleet_of, ground_of, keeps, plan, usage_after
from tests.planner.views import carrying, later
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.planner import shed
from trimtab.planner.search import fewest_moves
from trimtab.planner.search.bands import run_trial, run_trials
from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Band, BoardMove, Ground
from trimtab.planner.search.habits import HABITS, Habit
from trimtab.planner.search.least import fewest_leaving
from trimtab.planner.search.levels import mean_of, positions
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
    trial, _ = run_trial(ground_of(fleet), keeps(fleet), Band(0.4, 0.5), [habit], 50)
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

    def counted(*args: object) -> Iterator[Trial]:
        for trial in run_trials(*args):  # type: ignore[arg-type]  # the same arguments
            made.append(trial)
            yield trial

    monkeypatch.setattr(fewest_moves, "run_trials", counted)
    fleet = fleet_of(np.linspace(0.1, 0.9, 300), np.arange(300), np.ones(300))
    assert plan(fleet, TARGET, LITTLE).steps == ()
    assert len(made) <= len(HABITS)


SIZES = st.lists(
    st.lists(st.sampled_from([0.05, 0.1, 0.2, 0.35]), max_size=4), min_size=2, max_size=3
)
LOADS = SIZES.filter(lambda brokers: 0 < sum(map(len, brokers)) <= 7)


@example([[0.2, 0.2, 0.2], [0.05], []], 0.4)
@given(LOADS, st.sampled_from([0.1, 0.15, 0.25, 0.3, 0.4]))
def test_no_plan_that_empties_a_band_from_above_moves_fewer_than_the_fewest(
    brokers: list[list[float]], high: float
) -> None:
    fleet = Carried(brokers).fleet
    n, where, size = len(brokers), fleet.where, fleet.size
    every = (np.array(each) for each in product(range(n), repeat=len(size)))
    moves = [
        np.count_nonzero(each != where)
        for each in every
        if (np.bincount(each, size, n) <= high + ALIKE).all()
    ]
    fewest = fewest_leaving(ground_of(fleet), Band(0.0, high))
    assert fewest <= min(moves, default=fewest)


def test_what_must_leave_each_broker_is_counted_largest_first() -> None:
    """The first broker is to lose 0.25, two of its bundles; the second 0.05, one; nothing helps the
    third, of which most may not move."""
    fleet = Carried([[0.1, 0.2, 0.15, 0.2], [0.25, 0.2], [0.3, 0.3, 0.3], [0.1]]).fleet
    may_go = np.array([True] * 6 + [False, False, True] + [True])
    ground = Ground.of(fleet, np.ones(4, np.bool_), may_go)
    assert fewest_leaving(ground, Band(0.3, 0.4)) == 2 + 1


def test_bands_that_need_more_moves_than_a_plan_has_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Band] = []

    def note(ground: Ground, keeps: list[int], band: Band, most: int) -> Iterator[Trial]:
        tried.append(band)
        return run_trials(ground, keeps, band, most)

    monkeypatch.setattr(fewest_moves, "run_trials", note)
    fleet = crowded(20, 2_000, 10)
    found = plan(fleet, TARGET)
    left_out = {*positions_of(fleet)} - {*tried}
    assert left_out
    for band in left_out:
        assert fewest_leaving(ground_of(fleet), band) > len(found.steps)
    for band in left_out:
        for trial in run_trials(ground_of(fleet), keeps(fleet), band, 10**6):
            assert len(trial.steps) > len(found.steps)


def positions_of(fleet: Fleet) -> list[Band]:
    """The bands of a search on the fleet."""
    ground = ground_of(fleet)
    low, high = ground.extremes(fleet.usage)
    return positions(low, high, mean_of(ground), TARGET, 15)
