"""What brokers take by themselves: until it has lasted, no broker gives or receives for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import KEPT, carrying, later
from trimtab.arrays import BANDWIDTH_IN, CPU, Floats
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.resources.own_use import doubted_part, find_unusual, leave_out_doubted
from trimtab.planner import shed
from trimtab.settings import Settings

BROKERS = 8
NAMES = tuple("abcdefgh")
QUARTER_S = 900.0
Own = Callable[[int], Floats]


def test_it_is_as_likely_as_not_to_last_as_long_again() -> None:
    watched_s = np.array([0.0, 1.0, 3.0]) * QUARTER_S
    assert doubted_part(watched_s).tolist() == [1.0, 0.5, 0.25]


def test_a_fleet_without_brokers_has_nothing_to_doubt() -> None:
    none = np.zeros(0)
    assert find_unusual(none, np.zeros(0, np.int64)).size == 0
    assert leave_out_doubted(none, none).size == 0


def test_only_brokers_of_a_kind_are_compared() -> None:
    own, kind = np.array([0.1, 0.2, 0.1, 0.5, 0.4]), np.array([0, 0, 0, 1, 1])
    assert find_unusual(own, kind).tolist() == pytest.approx([0.0, 0.1, 0.0, 0.1, 0.0])


@pytest.mark.parametrize(
    ("first", "doubted", "counts"),
    [
        pytest.param(0.7, 0.1, 0.6, id="it is hot by itself: what it carries counts"),
        pytest.param(0.7, 0.3, 0.5, id="without it it would be cold: neither"),
        pytest.param(0.5, 0.2, 0.5, id="it is even with it: it does not receive for it"),
        pytest.param(0.7, -0.1, 0.7, id="it is hot though it takes little by itself"),
        pytest.param(0.3, -0.1, 0.4, id="it is cold by itself"),
    ],
)
def test_the_usage_nearer_to_the_mean_counts(first: float, doubted: float, counts: float) -> None:
    usage = np.array([first, 0.5, 1.0 - first, 0.5])
    cautious = leave_out_doubted(usage, np.array([doubted, 0.0, 0.0, 0.0]))
    assert cautious.tolist() == pytest.approx([counts, *usage[1:]])


def collecting(minute: int) -> Floats:
    """Garbage that each broker collects at times of its own: up to 15 points, every half hour."""
    garbage: Floats = 0.15 * ((minute / np.linspace(25, 40, BROKERS) + NEXT) % 1.0)
    return garbage


NEXT = np.array([3, 0, 6, 1, 7, 4, 2, 5]) / BROKERS


def busy(_: int) -> Floats:
    """Two brokers have a neighbour on the machine that takes 15 points for good."""
    more: Floats = np.where(np.arange(BROKERS) < 2, 0.15, 0.0)
    return more


def plans(own: Own, minutes: int) -> list[int]:
    """The minutes with plans in a fleet whose bundles keep still and whose brokers take ``own``
    more, from the first report on."""
    start = carrying({name: [(f"t/{name}", 0.02)] * 20 for name in NAMES})
    history, found = PlannerHistory(), []
    average = start.brokers.resources[CPU] + 100 * own(0)
    for minute in range(minutes):
        view = later(start, minute)
        resources, smoothed = view.brokers.resources.copy(), view.brokers.resources.copy()
        resources[CPU] += 100 * own(minute)
        smoothed[CPU] = average = KEPT * average + (1 - KEPT) * resources[CPU]
        brokers = replace(view.brokers, resources=resources, smoothed_resources=smoothed)
        wishes, history = shed(replace(view, brokers=brokers), history, Settings())
        found += [minute] if wishes else []
    return found


def test_brokers_that_collect_garbage_in_turn_are_left_alone() -> None:
    assert plans(collecting, 240) == []


def test_nothing_is_expected_to_last_where_links_compete_with_processors_either() -> None:
    """The links carry 20 to 32 %, and do not go with the processors."""
    start = carrying({name: [(f"t/{name}", 0.02)] * 20 for name in NAMES})
    resources = start.brokers.resources.copy()
    resources[CPU] += 100 * collecting(0)
    resources[BANDWIDTH_IN] = [20, 32, 26, 20, 32, 26, 20, 32]
    brokers = replace(
        start.brokers,
        resources=resources,
        smoothed_resources=resources,
        limits=np.full_like(resources, 100.0),
    )
    _, history = shed(replace(start, brokers=brokers), PlannerHistory(), Settings())
    assert len(history.needs.keys)
    assert np.ptp([foreseen.usage for foreseen in history.foreseen.values()]) < 0.01


def test_a_broker_that_stays_busy_gives_after_some_minutes() -> None:
    first = plans(busy, 60)[0]
    assert 5 < first < 30
