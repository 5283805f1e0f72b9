"""Plans: few moves, in an order that lifts no broker above the first peak."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given

from tests.planner.brute import ALIKE, best
from tests.planner.fleets import (
    EFFORT,
    Carried,
    fleet_of,
    fleets,
    ground_of,
    keeps,
    plan,
    targets,
    usage_after,
)
from tests.support.examples import examples
from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.fewest_moves import find_plan
from trimtab.planner.search.floor import floor_of
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.order import order_moves
from trimtab.planner.search.trial import Trial


def test_two_brokers_need_one_move() -> None:
    fleet = Carried([[0.1, 0.2, 0.3], [0.2]]).fleet
    found = plan(fleet, 0.05)
    assert found.steps == (BoardMove(bundle=1, source=0, destination=1),)
    assert found.range == pytest.approx(0)
    assert found.load == pytest.approx(0.2)


def test_one_move_helps_two_of_three() -> None:
    """The hottest gives the coldest what brings both to the third."""
    fleet = Carried([[0.1, 0.2, 0.4], [0.2, 0.3], [0.3]]).fleet
    assert plan(fleet, 0.05).steps == (BoardMove(bundle=1, source=0, destination=2),)


def test_two_bundles_change_places_where_no_single_move_helps() -> None:
    """The small one goes last: the large one's departure makes room for it."""
    fleet = Carried([[0.3, 0.3, 0.3], [0.2, 0.2, 0.2]]).fleet
    there, back = plan(fleet, 0.15).steps
    assert (fleet.size[there.bundle], there.source) == (0.3, 0)
    assert (fleet.size[back.bundle], back.source) == (0.2, 1)


def test_a_change_of_places_that_no_order_allows_is_not_half_done() -> None:
    """Whichever goes first would lift the other broker above 0.61."""
    found = plan(Carried([[0.3, 0.31], [0.2, 0.2]]).fleet, 0.05)
    assert found.steps == ()
    assert found.range == pytest.approx(0.21)


def test_what_is_within_the_target_stays() -> None:
    assert plan(Carried([[0.2, 0.22], [0.2, 0.2]]).fleet, 0.05).steps == ()


def test_nothing_is_moved_for_a_giant_that_cannot_be_helped() -> None:
    fleet = Carried([[0.9], [0.1, 0.1], [0.1, 0.1]]).fleet
    assert floor_of(ground_of(fleet)) == pytest.approx(0.7)
    assert plan(fleet, 0.05).steps == ()


def test_what_the_broker_of_a_lone_bundle_takes_by_itself_counts_as_the_bundle_s() -> None:
    """Else the giant would force less on another broker, to which no plan moves it, and plans would
    even out all others for nothing."""
    fleet = Carried([[0.5], [0.1, 0.1], [0.1, 0.1]]).fleet
    fleet = replace(fleet, usage=fleet.usage + np.array([0.3, 0.0, 0.0]))
    assert floor_of(ground_of(fleet)) == pytest.approx(0.6)


def test_a_lone_bundle_forces_no_more_than_it_does_on_a_stronger_broker() -> None:
    fleet = Carried([[0.6], [0.1, 0.1]], gain=[1.0, 0.5]).fleet
    assert floor_of(ground_of(fleet)) == pytest.approx(0.6 * 0.5 - 0.1)


def test_a_broker_on_which_load_costs_next_to_nothing_forces_nothing() -> None:
    """The others' share in the fleet's speed is lost in rounding, if it is a difference."""
    fleet = Carried([[0.5], [0.1]], gain=[1e-9, 1e9]).fleet
    assert floor_of(ground_of(fleet)) == 0.0


def test_a_giant_is_freed_of_what_stands_beside_it() -> None:
    fleet = Carried([[0.1, 0.8], [0.1, 0.1], [0.1]]).fleet
    assert plan(fleet, 0.05).steps == (BoardMove(bundle=0, source=0, destination=2),)


def test_one_that_many_small_ones_would_have_to_leave_for_goes_first() -> None:
    """Its host is filled again with two of the others', instead of giving twenty small ones."""
    even = [0.1] * 6 + [0.07]
    fleet = Carried([[0.4] + [0.01] * 27, even, [], [0.1] * 4, *[[0.1] * 4 + [0.035]] * 8]).fleet
    steps = plan(fleet, 0.1).steps
    assert BoardMove(bundle=0, source=0, destination=2) in steps
    assert len(steps) == 3


def test_one_that_does_not_fit_goes_where_a_few_make_room() -> None:
    others = [[0.1] * 4 + [0.035]] * 8
    fleet = Carried([[0.4] + [0.01] * 27, [0.1, 0.1], *others]).fleet
    steps = plan(fleet, 0.1).steps
    assert BoardMove(bundle=0, source=0, destination=1) in steps
    assert len(steps) <= 5


def test_the_larger_broker_takes_more() -> None:
    """Of 1.0 in all, a broker of four times the capacity ends with four fifths."""
    fleet = Carried([[0.1] * 10, []], gain=[1.0, 0.25]).fleet
    found = plan(fleet, 0.05)
    assert len(found.steps) == 8
    np.testing.assert_allclose(usage_after(fleet, found.steps), [0.2, 0.2])


def test_what_must_stay_stays() -> None:
    fleet = Carried([[0.1, 0.2, 0.3], [0.2]]).fleet
    fixed = replace(fleet, movable=np.array([True, False, True, True]))
    assert 1 not in {step.bundle for step in plan(fixed, 0.05).steps}


def test_a_broker_keeps_what_it_must() -> None:
    fleet = Carried([[0.3, 0.3], []]).fleet
    assert find_plan(ground_of(fleet), [2, 0], 0.05, 400_000).steps == ()
    assert len(find_plan(ground_of(fleet), [1, 0], 0.05, 400_000).steps) == 1


def test_who_may_not_receive_is_given_nothing() -> None:
    fleet = Carried([[0.1] * 6, [], [0.1] * 2]).fleet
    everybody = np.ones(3, np.bool_)
    receives = np.array([True, False, True])
    ground = ground_of(fleet).of(fleet, everybody, np.ones(8, np.bool_), receives)
    found = find_plan(ground, keeps(fleet), 0.05, 400_000)
    assert [step.destination for step in found.steps] == [2, 2]


def test_who_may_not_receive_does_not_become_the_coldest() -> None:
    """To fill the third broker from the second, which is between the others, would leave a range of
    0.4 where it was 0.3."""
    fleet = Carried([[0.6], [0.2, 0.2], [0.15, 0.15]]).fleet
    everybody, receives = np.ones(3, np.bool_), np.array([True, False, True])
    ground = Ground.of(fleet, everybody, np.ones(5, np.bool_), receives)
    assert find_plan(ground, keeps(fleet), 0.05, 400_000).steps == ()


def test_no_plan_widens_the_range_whoever_may_receive() -> None:
    """Of these fleets two are planned so if a broker that only gives never counts as coldest."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        n = int(rng.integers(3, 6))
        size = rng.lognormal(0, 0.8, int(rng.integers(n, 3 * n)))
        fleet = fleet_of(size * 0.5 * n / size.sum(), rng.integers(0, n, len(size)), np.ones(n))
        receives = rng.random(n) < 0.7
        ground = Ground.of(fleet, np.ones(n, np.bool_), fleet.movable, receives)
        after = usage_after(fleet, find_plan(ground, keeps(fleet), 0.1, EFFORT).steps)
        assert np.ptp(after) <= np.ptp(fleet.usage) + 1e-8


def test_departures_come_before_the_arrivals_they_make_room_for() -> None:
    """The second broker must give before it can take, or it would stand above the first."""
    fleet = Carried([[0.5, 0.1], [0.3, 0.25], [0.1]]).fleet
    arrival, departure = BoardMove(1, 0, 1), BoardMove(2, 1, 2)
    assert order_moves(fleet, [arrival, departure]) == (departure, arrival)


def test_what_would_lift_a_broker_above_the_peak_in_any_order_is_left_out() -> None:
    fleet = Carried([[0.5], [0.3, 0.1]]).fleet
    assert order_moves(fleet, [BoardMove(0, 0, 1)]) == ()


@examples(150)
@given(fleets(), targets)
def test_every_plan_keeps_all_promises(fleet: Fleet, target: float) -> None:
    """All are looked for in the same plans: to make a plan takes longer than to judge it."""
    found = plan(fleet, target)
    assert_each_moves_once_from_where_it_is(fleet, found)
    assert_no_broker_is_above_the_peak(fleet, found)
    assert_it_does_what_it_says(fleet, found)
    assert_no_broker_is_emptied(fleet, found)


def assert_each_moves_once_from_where_it_is(fleet: Fleet, found: Trial) -> None:
    assert len({step.bundle for step in found.steps}) == len(found.steps)
    for bundle, source, destination in found.steps:
        assert fleet.where[bundle] == source != destination


def assert_no_broker_is_above_the_peak(fleet: Fleet, found: Trial) -> None:
    """A bundle is on its source until it has arrived."""
    usage, peak = fleet.usage.copy(), fleet.usage.max()
    for bundle, source, destination in found.steps:
        usage[destination] += fleet.size[bundle] * fleet.gain[destination]
        assert usage[destination] <= peak + 1e-8
        usage[source] -= fleet.size[bundle] * fleet.gain[source]


def assert_it_does_what_it_says(fleet: Fleet, found: Trial) -> None:
    """And loses no bundle."""
    after = usage_after(fleet, found.steps)
    assert found.range == pytest.approx(np.ptp(after), abs=1e-8)
    assert found.range <= np.ptp(fleet.usage) + 1e-8
    where = fleet.where.copy()
    for step in found.steps:
        where[step.bundle] = step.destination
    np.testing.assert_allclose(after, fleet_of(fleet.size, where, fleet.gain).usage, atol=1e-9)
    assert found.load == pytest.approx(sum(fleet.size[s.bundle] for s in found.steps))


def assert_no_broker_is_emptied(fleet: Fleet, found: Trial) -> None:
    left = np.bincount(fleet.where, minlength=len(fleet.usage))
    had = left > 0
    for _, source, destination in found.steps:
        left[source] -= 1
        left[destination] += 1
    assert (left[had] >= 1).all()


@examples(50)
@given(fleets(), targets)
def test_equal_fleets_get_equal_plans(fleet: Fleet, target: float) -> None:
    again = replace(fleet, usage=fleet.usage.copy(), size=fleet.size.copy())
    assert plan(fleet, target) == plan(again, target)


@examples(50)
@given(fleets(), targets)
def test_little_effort_gives_a_sound_plan(fleet: Fleet, target: float) -> None:
    found = plan(fleet, target, 1000)
    assert np.ptp(usage_after(fleet, found.steps)) <= np.ptp(fleet.usage) + 1e-8


@cache
def differences() -> list[int]:
    """For random fleets, the plan's moves less the fewest that reach the best range; 99 where the
    plan does not reach it."""
    rng, found = np.random.default_rng(20), []
    for _ in range(150):
        n = int(rng.integers(2, 5))
        m = int(rng.integers(n, 10 if n < 4 else 9))
        size = rng.lognormal(0, 1, m)
        size *= 0.45 * n / size.sum()
        fleet = fleet_of(size, rng.integers(0, n, m), np.ones(n))
        target = 0.98 * float(rng.choice([0.05, 0.1, 0.2, 0.3]))
        optimum, planned_ = best(fleet, target), plan(fleet, target)
        reaches = planned_.range <= optimum.range + 1e-6
        found.append(len(planned_.steps) - optimum.moves if reaches else 99)
    return found


def test_tiny_fleets_get_the_fewest_moves_there_are() -> None:
    equal = [difference <= 0 for difference in differences()]
    assert np.mean(equal) >= 0.95


def test_where_the_range_is_reached_it_takes_at_most_one_move_more() -> None:
    assert max(difference for difference in differences() if difference != 99) <= 1
    assert differences().count(99) <= 2


def test_the_fewest_moves_of_a_fleet_that_can_be_counted_by_hand() -> None:
    fleet = Carried([[0.1, 0.2, 0.3], [0.2]]).fleet
    assert best(fleet, 0.05) == (1, 0.05, True)
    moves, least, reached = best(Carried([[0.9, 0.1], [0.1, 0.1]]).fleet, 0.05)
    assert (moves, reached) == (1, False)
    assert least == pytest.approx(0.6, abs=ALIKE)


def test_what_is_too_much_for_a_broker_alone_goes_to_a_larger_one_and_its_host_is_filled() -> None:
    """0.9 on a broker of 1, beside one of 4 at 0.45: the larger one takes it and gives others."""
    fleet = Carried([[0.9], [0.1] * 18], gain=[1.0, 0.25]).fleet
    found = plan(fleet, 0.05)
    assert found.steps[0] == BoardMove(0, 0, 1)
    assert {step.destination for step in found.steps[1:]} == {0}
    assert usage_after(fleet, found.steps) == pytest.approx([0.5, 0.55])


def test_a_broker_is_not_left_with_nothing() -> None:
    """The giant would do better on the larger broker, but nothing could go to its host instead."""
    fleet = Carried([[0.9], []], gain=[1.0, 0.25]).fleet
    assert plan(fleet, 0.05).steps == ()
