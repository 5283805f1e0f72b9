"""Each plan makes the next one wait for a wider range, unless it continues an unfinished one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulation.scenarios import change_scenario, load, run, strategy
from tests.planner.fleets import Carried, ground_of
from tests.planner.views import INTERVAL_MS, carrying, later
from tests.support.clusters import NOW_MS
from trimtab.load_model.estimating.leap_record import LeapRecord, open_leaps
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.wariness import (
    Made,
    find_answered_part,
    find_tolerated_range,
    note_plan,
    unrest_of,
)
from trimtab.names import identities
from trimtab.planner import shed
from trimtab.planner.outlook import Prospect
from trimtab.planner.pools import Pool
from trimtab.planner.search.floor import floor_of
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


@pytest.mark.parametrize(
    ("coldest", "unrest", "rests"),
    [
        pytest.param(0.27, 0.0, False, id="a first plan goes to the floor"),
        pytest.param(0.27, 3.0, True, id="recent plans widen what is accepted below the others"),
        pytest.param(0.17, 3.0, False, id="by as much as on one side of a fleet without a giant"),
    ],
)
def test_beside_a_giant_recent_plans_count_too(coldest: float, unrest: float, rests: bool) -> None:
    """The giant alone makes a range of 0.2, more than the 0.15 that are accepted after plans."""
    ground = ground_of(Carried([[0.5], [coldest], [0.6 - coldest]]).fleet)
    pair = widest(ground, Settings(), unrest)
    pool = Pool(np.ones(3, np.bool_), np.ones(3, np.bool_), None)
    accepted = find_tolerated_range(Settings(), unrest)
    found = Prospect(pool, ground, pair, floor_of(ground), 0.05, accepted)
    assert found.floor == pytest.approx(0.2)
    assert (found.beyond <= 0) == rests


def test_corrections_of_one_plan_count_less_and_less_and_a_swing_counts_each_time() -> None:
    """By moves over those of the plan before, however many moves the first one took."""
    settings, history = Settings(), PlannerHistory()
    for minute, moves in enumerate((18, 6, 3)):
        history = _planned(history, moves, minute, settings)
    assert history.unrest == pytest.approx(1 + 6 / 18 + 3 / 6, rel=0.01)
    for minute in range(3, 9):
        history = _planned(history, 3, minute, settings)
    assert history.unrest == pytest.approx(1 + 6 / 18 + 3 / 6 + 6, rel=0.01)


def _planned(past: PlannerHistory, moves: int, minute: int, settings: Settings) -> PlannerHistory:
    now_ms = NOW_MS + minute * INTERVAL_MS
    return note_plan(past, Made(moves), unrest_of(past, now_ms), settings, now_ms)


def test_plans_that_answer_steps_make_no_later_one_wait_and_half_of_one_counts_half() -> None:
    history = PlannerHistory()
    for hour, answered in enumerate((1.0, 1.0, 0.5)):
        now_ms = NOW_MS + hour * 60 * INTERVAL_MS
        unrest = unrest_of(history, now_ms)
        history = note_plan(history, Made(2, answered), unrest, Settings(), now_ms)
    assert history.unrest == pytest.approx(0.5)


def test_plans_of_a_young_fleet_whose_bundles_burst_count_as_one() -> None:
    """Each corrects the first, and later ones count as ever."""
    history, settings = PlannerHistory(), Settings()
    for hour, bursting in enumerate((True, True, True, False)):
        now_ms = NOW_MS + hour * 60 * INTERVAL_MS
        unrest = unrest_of(history, now_ms)
        history = note_plan(history, Made(2, provisional=bursting), unrest, settings, now_ms)
        assert history.unrest == pytest.approx(1.0 if bursting else 2.0, abs=0.06)


@pytest.mark.parametrize(
    ("bursts", "counted"),
    [
        pytest.param(8, 0.0, id="bursts may go on that were not seen to begin"),
        pytest.param(0, 1.0, id="no bundle bursts"),
    ],
)
def test_a_plan_counts_in_full_where_no_burst_was_missed(bursts: int, counted: float) -> None:
    """It is the second plan of a fleet that is known for a quarter of an hour."""
    loads = {"a": [0.1] * 7, "b": [0.1] * 3, "c": [0.04] * 8}
    view = carrying({name: [("t/n", load) for load in each] for name, each in loads.items()})
    since_ms = view.now_ms - 15 * INTERVAL_MS
    history = PlannerHistory(since_ms=dict.fromkeys(view.brokers.names, since_ms))
    _, history = shed(view, history, Settings())
    keys = np.sort(identities(view.bundles.names)[10 : 10 + bursts])
    level = np.full(bursts, 0.04 / 1.32)
    begun_ms = since_ms + np.arange(2, 2 + bursts) * INTERVAL_MS
    leaps = LeapRecord()
    for at in range(bursts):
        levels = level[at : at + 1] / 3, level[at : at + 1]
        leaps = open_leaps(leaps, keys[at : at + 1], levels, begun_ms[at : at + 1])
    history = replace(history, leaps=leaps, unrest=1.0, planned_ms=view.now_ms - 12 * INTERVAL_MS)
    wishes, after = shed(later(view, 1), history, Settings())
    assert wishes
    assert after.unrest == pytest.approx(1.0 + counted, abs=0.06)


@pytest.mark.parametrize(
    ("high", "returned", "counted"),
    [
        pytest.param(0.5, 0.0, 0.0, id="of late it carried half at most: it grows"),
        pytest.param(1.0, 0.0, 1.0, id="of late it carried as much"),
        pytest.param(0.5, 9.0, 1.0, id="leaps of this fleet pass: more of them may go on"),
    ],
)
def test_plans_of_a_fleet_that_grows_beyond_its_highest_count_as_one(
    high: float, returned: float, counted: float
) -> None:
    """It is the second plan of a fleet that is known for an hour."""
    since_ms = SKEWED.now_ms - 60 * INTERVAL_MS
    history = PlannerHistory(since_ms=dict.fromkeys(SKEWED.brokers.names, since_ms))
    for minute in range(2):
        wishes, history = shed(later(SKEWED, minute), history, Settings())
    assert wishes
    highs = replace(history.highs, carried=high * history.highs.carried)
    planned_ms = SKEWED.now_ms - 30 * INTERVAL_MS
    leaps = LeapRecord(returned=(0.0, returned, *[0.0] * 5), at_ms=SKEWED.now_ms)
    history = replace(history, highs=highs, leaps=leaps, unrest=1.0, planned_ms=planned_ms)
    wishes, after = shed(later(SKEWED, 2), history, Settings())
    assert wishes
    assert after.unrest == pytest.approx(1.0 + counted, abs=0.06)


@pytest.mark.parametrize(
    ("taken", "minute", "returned", "part"),
    [
        pytest.param(0.02, 50, 0.0, 1.0, id="what the leap brought is taken away"),
        pytest.param(0.04, 50, 0.0, 0.5, id="twice as much is"),
        pytest.param(-0.02, 50, 0.0, 0.0, id="more is brought to where it leapt"),
        pytest.param(0.02, 30, 0.0, 0.0, id="the last plan knew of the leap"),
        pytest.param(0.02, 50, 9.0, 0.0, id="leaps of this fleet pass"),
    ],
)
def test_a_plan_answers_what_leapt_since_the_last(
    taken: float, minute: int, returned: float, part: float
) -> None:
    """A bundle of the first of three brokers grows by 0.02 of the fleet's traffic, and so did one
    that is gone."""
    known = LeapRecord(returned=(0.0, returned, *[0.0] * 5), lasted=5.0)
    names = [f"t/n/0x{at:08x}_0x{at + 1:08x}" for at in range(4)]
    leapt = identities([names[0], names[3]])
    now_ms = NOW_MS + minute * INTERVAL_MS
    leaps = open_leaps(known, leapt, (np.full(2, 0.01), np.full(2, 0.03)), np.full(2, now_ms))
    history = PlannerHistory(leaps=leaps, planned_ms=NOW_MS + 40 * INTERVAL_MS)
    brought, where = np.array([-taken, taken / 2, taken / 2]), np.array([0, 1, 0])
    found = find_answered_part(history, names[:3], where, brought, now_ms)
    assert found == pytest.approx(part)


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
