"""No plan moves less than the bound says, and none balances better than a bundle allows."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulation.scenarios.outcomes.bounds import floor, survival
from trimtab.arrays import Floats
from trimtab.planner.search.least import least_moved


def column(*values: float) -> Floats:
    return np.array(values)


@pytest.mark.parametrize(
    ("carried", "capacity", "within", "least"),
    [
        pytest.param((0.8, 0.2), (1, 1), 0.0, 0.3, id="two meet in the middle"),
        pytest.param((0.8, 0.2), (1, 1), 0.2, 0.2, id="or as near as they need"),
        pytest.param((0.8, 0.2), (1, 1), 0.6, 0.0, id="or not at all"),
        pytest.param((0.9, 0.3, 0.3), (1, 1, 1), 0.0, 0.4, id="one gives to two"),
        pytest.param((0.6, 0.6, 0.0), (1, 1, 1), 0.1, 1 / 3, id="two give to a third"),
        pytest.param((0.9, 0.9), (1, 4), 0.0, 0.54, id="the larger one takes more"),
    ],
)
def test_least_moved(
    carried: tuple[float, ...], capacity: tuple[float, ...], within: float, least: float
) -> None:
    room = column(*capacity)
    assert least_moved(column(*carried) / room, room, within) == pytest.approx(least)


sizes = st.lists(st.integers(1, 20), min_size=2, max_size=6)


@given(
    sizes=sizes,
    owners=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    capacity=st.tuples(*[st.sampled_from([1.0, 2.0, 4.0])] * 3),
)
@example(sizes=[20, 1, 1], owners=[0, 0, 0, 0, 0, 0], capacity=(1.0, 4.0, 2.0))
def test_no_plan_moves_less_than_the_bound_for_the_range_it_reaches(
    sizes: list[int], owners: list[int], capacity: tuple[float, ...]
) -> None:
    load, start = column(*sizes), np.array(owners[: len(sizes)])
    room = column(*capacity)
    carried = np.bincount(start, load, 3).astype(np.float64)
    for plan in product(range(3), repeat=len(sizes)):
        levels = np.bincount(plan, load, 3) / room
        moved = load[start != plan].sum()
        reached = float(levels.max() - levels.min())
        assert moved >= least_moved(carried / room, room, reached) - 1e-9


@given(sizes=sizes, capacity=st.tuples(*[st.sampled_from([1.0, 2.0])] * 3))
def test_the_bound_falls_as_the_range_grows_and_is_nothing_at_the_start_s(
    sizes: list[int], capacity: tuple[float, ...]
) -> None:
    room = column(*capacity)
    carried = np.bincount(np.arange(len(sizes)) % 3, column(*sizes), 3).astype(np.float64)
    levels = carried / room
    ranges = np.linspace(0.0, float(levels.max() - levels.min()), 7)
    least = [least_moved(carried / room, room, each) for each in ranges]
    assert all(a >= b - 1e-9 for a, b in pairwise(least))
    assert least[-1] == pytest.approx(0.0, abs=1e-9)


@given(sizes=st.lists(st.integers(1, 20), min_size=3, max_size=6), strong=st.booleans())
def test_no_layout_has_a_range_below_the_floor(sizes: list[int], strong: bool) -> None:
    load, room = column(*sizes), column(1, 1, 4 if strong else 1)
    best = min(
        np.ptp(np.bincount(layout, load, 3) / room)
        for layout in product(range(3), repeat=len(sizes))
    )
    assert best >= floor(load, room) - 1e-9


def test_a_giant_leaves_what_it_stands_above_the_others() -> None:
    assert floor(column(0.6, 0.2, 0.2, 0.2), column(1, 1, 1)) == pytest.approx(0.3)
    assert floor(column(0.2, 0.2, 0.2), column(1, 1, 1)) == 0


@pytest.mark.parametrize(
    ("carried", "limit", "share", "worst"),
    [
        pytest.param((0.4, 0.4, 0.4), 0.85, 1.0, 0.6, id="any may go"),
        pytest.param((0.6, 0.6, 0.6), 0.85, 0.0, 0.9, id="none may"),
        pytest.param((0.0, 0.8, 0.8), 0.85, 1.0, 0.8, id="the idle one takes it"),
        pytest.param((0.2, 0.3, 1.0), 0.85, 1 / 3, 1.0, id="only the full one may go"),
    ],
)
def test_survival(carried: tuple[float, ...], limit: float, share: float, worst: float) -> None:
    found = survival(column(*carried), column(1, 1, 1), np.arange(3), limit)
    assert found.share == pytest.approx(share)
    assert found.worst == pytest.approx(worst)


def test_a_failure_domain_is_lost_as_a_whole() -> None:
    carried, room = column(0.4, 0.4, 0.4, 0.4), column(1, 1, 1, 1)
    assert survival(carried, room, np.array([0, 0, 1, 1]), 0.85).worst == pytest.approx(0.8)


def test_brokers_that_are_down_take_nothing() -> None:
    carried, room = column(0.4, 0.4, 0.0), column(1, 1, 1)
    up = np.array([True, True, False])
    assert survival(carried, room, np.arange(3), 0.85, up).worst == pytest.approx(0.8)
