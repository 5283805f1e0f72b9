"""Habits of a trial: those that choose alike share one, which changes no plan."""

from __future__ import annotations

from hypothesis import example, given

from tests.planner.fleets import Carried, fleets, ground_of, keeps, targets
from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.bands import run_trial, run_trials
from trimtab.planner.search.ground import Band
from trimtab.planner.search.habits import HABITS, Habit
from trimtab.planner.search.levels import mean_of

MOST = 200
OUTSIZED = Carried(
    [[0.4] + [0.01] * 27, [0.1] * 6 + [0.07], [], [0.1] * 4, *[[0.1] * 4 + [0.035]] * 8]
).fleet
"""Bold trials begin with the large bundle of the first broker."""
LACKING = Carried([[0.1, 0.15, 0.35], []]).fleet
"""To come below 0.5, the first broker has to give 0.1; the second lacks more."""


@example(OUTSIZED, 0.1)
@example(LACKING, 0.3)
@given(fleets(), targets)
def test_each_habit_gets_the_trial_that_it_makes_alone(fleet: Fleet, target: float) -> None:
    ground = ground_of(fleet)
    mean = mean_of(ground)
    for low in (mean - target, mean - target / 2, mean):
        band = Band(low, low + target)
        alone = [run_trial(ground, keeps(fleet), band, [habit], MOST)[0] for habit in HABITS]
        assert [*run_trials(ground, keeps(fleet), band, MOST)] == alone


def test_all_habits_share_a_trial_where_a_bundle_brings_both_brokers_into_the_band() -> None:
    fleet = Carried([[0.1, 0.2, 0.3], [0.2]]).fleet
    trial, alike = run_trial(ground_of(fleet), keeps(fleet), Band(0.35, 0.45), HABITS, MOST)
    assert [step.bundle for step in trial.steps] == [1]
    assert [*alike] == [*HABITS]


def test_habits_that_give_another_bundle_do_not_share_the_trial() -> None:
    """The thrifty give 0.1 and others 0.15, of which the second broker lacks more."""
    thrifty, lavish, *_ = HABITS
    trial, alike = run_trial(ground_of(LACKING), keeps(LACKING), Band(0.3, 0.5), HABITS, MOST)
    assert trial.steps[0].bundle == 0
    assert lavish not in alike
    assert all(habit.thrifty for habit in alike)
    other, _ = run_trial(ground_of(LACKING), keeps(LACKING), Band(0.3, 0.5), [lavish], MOST)
    assert other.steps[0].bundle == 1
    assert thrifty == alike[0]


def test_bold_habits_do_not_share_the_trial_of_others_where_a_bundle_goes_first() -> None:
    band = Band(0.38, 0.48)
    for first in (Habit(thrifty=False, bold=False), Habit(thrifty=False, bold=True)):
        others = [first, *(habit for habit in HABITS if habit != first)]
        _, alike = run_trial(ground_of(OUTSIZED), keeps(OUTSIZED), band, others, MOST)
        assert {habit.bold for habit in alike} == {first.bold}
