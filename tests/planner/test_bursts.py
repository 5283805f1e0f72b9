"""Bundles that leapt count as before, unless their broker stands out or nears overload."""

from __future__ import annotations

import numpy as np
import pytest

from simulation.scenarios.reading import load
from simulation.scenarios.running import run, strategy
from trimtab.load_model.bursts import (
    Hosts,
    find_largest,
    leave_out_bursts,
    make_limited_room,
    make_no_room,
)
from trimtab.settings import Settings

SETTINGS = Settings()
HOSTS = Hosts(rest=np.zeros(3), gain=np.ones(3), where=np.array([0, 1, 2]))
LEAPT = np.array([True, False, False])


def left_out(usage: float, *, known: bool = False) -> tuple[bool, bool]:
    """Whether the bundle that leapt counts as before, and whether its broker is relieved; it is
    alone on its broker, and the others are at 40 %."""
    full = HOSTS.usage(np.array([usage, 0.4, 0.4]))
    passing, relieved = leave_out_bursts(HOSTS, full, LEAPT, SETTINGS, known=known)
    return bool(passing[0]), bool(relieved[0])


def test_a_leap_within_the_range_of_the_others_waits() -> None:
    assert left_out(0.45) == (True, False)


def test_one_that_makes_its_broker_stand_out_counts_at_once() -> None:
    """A bundle that gets hot for good would weigh on its broker for a quarter of an hour."""
    assert left_out(0.6) == (False, False)


def test_it_stands_out_by_more_than_three_targets() -> None:
    assert left_out(0.54) == (True, False)
    assert left_out(0.56) == (False, False)


def test_usage_is_what_bundles_bring_and_what_they_do_not_explain() -> None:
    hosts = Hosts(np.array([0.1, 0.2]), np.array([1.0, 2.0]), np.array([0, 0, 1]))
    np.testing.assert_allclose(hosts.usage(np.array([0.1, 0.1, 0.3])), [0.3, 0.8])


def test_others_wait_where_one_broker_stands_out() -> None:
    full, leapt = np.array([0.6, 0.4, 0.4]), np.array([True, True, False])
    passing, _ = leave_out_bursts(HOSTS, full, leapt, SETTINGS, known=False)
    assert passing.tolist() == [False, True, False]


def test_where_leaps_pass_it_waits_unless_its_broker_nears_overload() -> None:
    assert left_out(0.6, known=True) == (True, False)
    assert left_out(0.9, known=True) == (False, True)


@pytest.mark.parametrize("brokers", [0, 1])
def test_a_fleet_without_others_has_none_that_stands_out(brokers: int) -> None:
    hosts = Hosts(np.zeros(brokers), np.ones(brokers), np.zeros(brokers, np.int64))
    full, leapt = np.full(brokers, 0.7), np.ones(brokers, np.bool_)
    passing, relieved = leave_out_bursts(hosts, full, leapt, SETTINGS, known=False)
    assert passing.all()
    assert not relieved.any()
    assert make_no_room(0.5 * full, full).tolist() == full.tolist()


def test_two_brokers_alike_do_not_stand_out() -> None:
    full = np.array([0.7, 0.7, 0.4])
    passing, _ = leave_out_bursts(HOSTS, full, LEAPT, SETTINGS, known=False)
    assert passing[0]


def test_a_burst_makes_no_room() -> None:
    """What came in its place would be too much as long as it lasts."""
    full, without = np.array([0.8, 0.25, 0.6, 0.4]), np.array([0.2, 0.1, 0.6, 0.4])
    np.testing.assert_allclose(make_no_room(without, full), [0.5, 0.25, 0.6, 0.4])


def test_where_all_brokers_have_bursts_none_looks_emptier_than_the_mean() -> None:
    full, without = np.array([0.8, 0.4]), np.array([0.2, 0.3])
    np.testing.assert_allclose(make_no_room(without, full), [0.6, 0.4])


def test_a_broker_gives_nothing_for_what_is_gone() -> None:
    """What fell may have been a burst that was there from the first, and may come back if not."""
    full, with_it = np.array([0.3, 0.55, 0.6, 0.4]), np.array([0.8, 0.7, 0.6, 0.4])
    np.testing.assert_allclose(make_no_room(with_it, full), [0.5, 0.55, 0.6, 0.4])


@pytest.mark.parametrize(
    ("full", "counted"),
    [
        pytest.param(0.5, 0.2, id="it could take all that it lacks of the mean, 0.2"),
        pytest.param(0.7, 0.3, id="with 0.1 more it would near overload"),
        pytest.param(0.9, 0.4, id="it is near overload as it is"),
        pytest.param(0.2, 0.2, id="it has no burst"),
    ],
)
def test_a_burst_that_passes_makes_no_more_room_than_is_left_below_overload(
    full: float, counted: float
) -> None:
    usage = np.array([0.2, 0.6, 0.4])
    room = make_limited_room(usage, np.array([full, 0.9, 0.4]), 0.8)
    np.testing.assert_allclose(room, [counted, 0.6, 0.4])


def test_brokers_without_bursts_count_as_they_are_in_a_fleet_near_overload() -> None:
    usage = np.array([0.7, 0.95])
    np.testing.assert_allclose(make_limited_room(usage, usage, 0.8), usage)
    assert not make_limited_room(np.zeros(0), np.zeros(0), 0.8).size


def test_the_largest_of_a_broker_counts_and_none_of_an_empty_one() -> None:
    of, where = np.array([0.1, 0.3, 0.2]), np.array([0, 2, 2])
    assert find_largest(of, where, 3).tolist() == [0.1, 0.0, 0.3]


def test_a_hot_bundle_is_dealt_with_once_and_its_broker_is_not_filled_again() -> None:
    small = {"brokers": 10, "bundles": 400, "namespaces": 10, "warm_up": 20, "cycles": 20}
    scenario = load("hot-bundle", **small)
    outcome = run(scenario, strategy("trimtab"))
    moves = np.flatnonzero(outcome.moves)
    assert moves.tolist() == [scenario.hot.cycle]
    assert outcome.figures.peak < 0.65
