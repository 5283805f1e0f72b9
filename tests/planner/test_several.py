"""Plans where several resources compete: each broker is as busy as its busiest one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.planner.fleets import fleet_of, ground_of, keeps
from tests.planner.plain_bands import plan_plainly
from trimtab.arrays import Floats
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search import several_board
from trimtab.planner.search.candidates import Candidates
from trimtab.planner.search.fewest_moves import find_plan
from trimtab.planner.search.floor import floor_of
from trimtab.planner.search.ground import Band, BoardMove, Ground
from trimtab.planner.search.levels import positions
from trimtab.planner.search.relief import relieve_unsure
from trimtab.planner.search.several import outweigh, try_bands
from trimtab.planner.search.standing import stand


def fleet(brokers: list[list[tuple[float, float]]], doubt: float = 0.0, tail: float = 0.0) -> Fleet:
    """Brokers by what their bundles take of two resources; all are as unsure of the first."""
    where = np.repeat(np.arange(len(brokers)), [len(each) for each in brokers])
    need = np.array([each for bundles in brokers for each in bundles]).T
    used = np.array([np.bincount(where, each, len(brokers)) for each in need])
    unsure = np.zeros_like(need)
    sway = np.zeros((2, *need.shape))
    takes = Takes(used, np.ones_like(used), need, unsure.copy(), unsure.copy(), sway, used)
    takes.doubt[0], takes.tail[0] = doubt, tail
    plain = fleet_of(need.sum(axis=0), where, np.ones(len(brokers)))
    return replace(plain, usage=takes.usage, takes=takes)


def planned(fleet: Fleet, target: float = 0.1) -> tuple[BoardMove, ...]:
    return find_plan(ground_of(fleet), keeps(fleet), target, 400_000).steps


def usage_after(fleet: Fleet, steps: tuple[BoardMove, ...]) -> Floats:
    """The plain way: the sums of what is where, and the highest of each broker."""
    takes, where = fleet.takes, fleet.where.copy()
    assert takes is not None
    for step in steps:
        assert where[step.bundle] == step.source
        where[step.bundle] = step.destination
    n = len(fleet.usage)
    sums = [np.bincount(where, need, n) for need in takes.need]
    highest: Floats = np.max(sums, axis=0)
    return highest


def test_processor_and_network_bundles_are_mixed() -> None:
    made = fleet([[(0.1, 0.0)] * 6, [(0.0, 0.1)] * 4])
    steps = planned(made)
    assert {step.source for step in steps} == {0}
    assert np.ptp(usage_after(made, steps)) <= 0.1 + 1e-9


def test_a_broker_busy_with_another_resource_has_room() -> None:
    made = fleet([[(0.1, 0.0)] * 6, [(0.0, 0.1)] * 3 + [(0.1, 0.0)]])
    steps = planned(made)
    assert {step.source for step in steps} == {0}
    assert np.ptp(usage_after(made, steps)) <= 0.1 + 1e-9


@pytest.mark.parametrize(("brokers", "positions"), [(3, 15), (150, 10), (400, 5)])
def test_the_larger_the_fleet_the_fewer_positions_of_a_band_are_tried(
    brokers: int, positions: int
) -> None:
    made = fleet([[(0.1, 0.0)] * 6, *[[(0.1, 0.0)]] * (brokers - 1)])
    assert made.takes is not None
    first = next(try_bands(ground_of(made), made.takes, keeps(made), 0.1, 10**9))
    assert len(first) == positions


def test_what_may_overload_its_destination_stays() -> None:
    brokers = [[(0.1, 0.0)] * 6, [(0.1, 0.1)] * 2]
    assert planned(fleet(brokers))
    assert not planned(fleet(brokers, tail=0.5))


def test_a_broker_is_filled_to_what_all_may_take_if_they_err_alike() -> None:
    made = fleet([[(0.06, 0.0)] * 10, [(0.06, 0.0)] * 10, []])
    assert len(planned(made)) == 6
    takes = made.takes
    assert takes is not None
    # Each takes twice as much if only messages cost, and nothing if only bytes do.
    sway = np.stack((takes.need, -takes.need))
    steps = planned(replace(made, takes=replace(takes, sway=sway)))
    assert len(steps) > 1
    assert 2 * 0.06 * len(steps) <= 0.6


def test_what_may_take_nothing_off_its_source_stays() -> None:
    brokers = [[(0.1, 0.0)] * 5, [(0.1, 0.1)] * 3]
    assert planned(fleet(brokers))
    assert not planned(fleet(brokers, doubt=0.1))


@pytest.mark.parametrize(
    ("full", "tail", "moves"),
    [
        pytest.param(0.8, 0.3, [(0, 2), (1, 3)], id="a bundle of each, to a broker of its own"),
        pytest.param(2.0, 0.3, [(0, 2), (1, 3)], id="none is near overload, but both stand out"),
        pytest.param(0.8, 0.8, [], id="at worst the other would be fuller than the first is"),
    ],
)
def test_a_broker_that_stands_out_gives_one_bundle_of_which_nothing_is_sure(
    full: float, tail: float, moves: list[tuple[int, int]]
) -> None:
    brokers = [[(0.31, 0.0)] * 3, [(0.3, 0.0)] * 3, [(0.1, 0.0)], [(0.1, 0.05)] * 2]
    made = replace(fleet(brokers, doubt=0.3, tail=tail), near_overload=full)
    assert [(s.source, s.destination) for s in planned(made)] == moves


@pytest.mark.parametrize(
    ("full", "target", "moves"),
    [
        pytest.param(0.8, 0.1, [], id="neither near overload nor far above the mean"),
        pytest.param(0.6, 0.1, [(0, 2)], id="near overload"),
        pytest.param(0.8, 0.05, [], id="a narrow target is no reason"),
    ],
)
def test_a_broker_that_hardly_stands_out_gives_nothing_of_which_nothing_is_sure(
    full: float, target: float, moves: list[tuple[int, int]]
) -> None:
    brokers = [[(0.22, 0.0)] * 3, [(0.18, 0.0)] * 3, [(0.2, 0.0)] * 2, [(0.22, 0.0)] * 2]
    made = replace(fleet(brokers, doubt=0.05, tail=0.03), near_overload=full)
    assert [(s.source, s.destination) for s in planned(made, target)] == moves


def test_relief_of_a_full_broker_leaves_what_is_sure_in_the_plan() -> None:
    # The second resource is known: its plan brings broker 1 down to the last. The first is not.
    idle = [[(0.01, 0.0)] * 2] * 2
    brokers = [[(0.31, 0.0)] * 3, [(0.01, 0.1)] * 6, [(0.1, 0.0)], *idle]
    made = replace(fleet(brokers, doubt=0.3, tail=0.3), near_overload=0.8)
    moves = [(step.source, step.destination) for step in planned(made)]
    assert moves == [(1, 3), (1, 4), (0, 2)]


@pytest.mark.parametrize(("tries", "moves"), [(1, []), (2, [(1, 0, 1)])])
def test_relief_tries_no_more_bundles_than_it_may(
    tries: int, moves: list[tuple[int, int, int]]
) -> None:
    """The heaviest fits nowhere at worst, the next one does."""
    made = fleet([[(0.5, 0.0), (0.4, 0.0)], [(0.3, 0.0)]])
    assert made.takes is not None
    made.takes.tail[0, 0] = 0.2
    assert relieve_unsure(ground_of(made), keeps(made), (), 0.8, tries) == tuple(moves)


def test_what_is_sure_of_one_resource_moves_for_its_sake() -> None:
    made = fleet([[(0.01, 0.1)] * 6, [(0.01, 0.0)] * 2], doubt=0.02, tail=0.06)
    assert planned(made)


def test_a_second_resource_that_goes_with_the_first_costs_few_moves() -> None:
    """The search where one resource rules finds nearly the fewest moves. With fewer positions of
    its bands, that of several takes an eighth more on these fleets."""
    several, one = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        made = fleet(
            [[(size, 0.3 * size) for size in rng.uniform(0.01, 0.09, 9)] for _ in range(16)]
        )
        steps = planned(made, 0.15)
        assert np.ptp(usage_after(made, steps)) <= 0.15
        several += len(steps)
        one += len(planned(replace(made, takes=None, size=made.size / 1.3), 0.15))
    assert several <= 1.08 * one


def test_of_two_plans_with_as_many_moves_the_hottest_broker_decides() -> None:
    """Any bundle of the hottest goes to the coldest; the smaller ones would save load."""
    made = fleet(
        [[(0.1, 0.0)] * 4 + [(0.06, 0.0), (0.04, 0.0)], [(0.08, 0.0)] * 4, [(0.1, 0.0)] * 3]
    )
    step, *others = planned(made, 0.15)
    assert not others
    assert usage_after(made, (step,)).tolist() == pytest.approx([0.4, 0.32, 0.4])


def test_a_giant_of_one_resource_sets_the_floor() -> None:
    made = fleet([[(0.9, 0.0)], [(0.0, 0.1)] * 2, [(0.1, 0.0)] * 2])
    assert floor_of(ground_of(made)) == pytest.approx(0.9 - 1.1 / 3)


parts = st.sampled_from([0.0, 0.01, 0.05, 0.2])
bundles = st.lists(st.tuples(parts, parts).filter(any), max_size=8)


@given(brokers=st.lists(bundles, min_size=2, max_size=6).filter(any), doubt=parts)
def test_no_plan_widens_the_range_or_exceeds_the_peak_on_the_way(
    brokers: list[list[tuple[float, float]]], doubt: float
) -> None:
    made = fleet(brokers, doubt, 3 * doubt)
    steps = planned(made)
    after = usage_after(made, steps)
    np.testing.assert_allclose(stand(made, steps).usage, after, atol=1e-9)
    assert np.ptp(after) <= np.ptp(made.usage) + 1e-9
    for place in range(len(steps)):
        assert usage_after(made, steps[: place + 1]).max() <= made.usage.max() + 1e-6
    assert len({step.bundle for step in steps}) == len(steps)


def bands_of(ground: Ground, takes: Takes, width: float) -> list[Band]:
    """Around an even spread, and below the bundle that takes most."""
    low, high = ground.extremes(ground.fleet.usage)
    top, even = outweigh(ground, takes)
    mean = max(even, low)
    tall = [Band(top - width, top)] if top > mean + width / 2 else []
    return tall + positions(low, high, mean, width, 15)


@example(
    # The second is below the giant's band, where nothing fills it, and above one where it gives.
    brokers=[[(0.9, 0.0)], [(0.03, 0.0)] * 16, [(0.1, 0.0)] * 3, *[[(0.1, 0.0)] * 4] * 6],
    doubt=0.0,
    sway=0.0,
    target=0.15,
    receives=[True] * 9,
)
@given(
    brokers=st.lists(bundles, min_size=2, max_size=6).filter(any),
    doubt=parts,
    sway=st.sampled_from([0.0, 0.5]),
    target=st.sampled_from([0.03, 0.05, 0.15]),
    receives=st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
)
def test_bands_that_share_their_first_look_are_planned_as_each_by_itself(
    brokers: list[list[tuple[float, float]]],
    doubt: float,
    sway: float,
    target: float,
    receives: list[bool],
) -> None:
    made = fleet(brokers, doubt, 3 * doubt)
    assert made.takes is not None
    takes = replace(made.takes, sway=np.stack((made.takes.need, -made.takes.need)) * sway)
    may = np.array(receives[: len(brokers)])
    may[0] |= not may.any()
    every = np.ones(len(made.size), np.bool_)
    ground = Ground.of(replace(made, takes=takes), np.ones(len(brokers), np.bool_), every, may)
    found = list(try_bands(ground, takes, keeps(made), target, 20_000))
    assert found == [
        plan_plainly(
            ground, takes, keeps(made), bands_of(ground, takes, part * target), target / 10
        )
        for part in (1.0, 0.6, 2.0)
    ]


def test_where_no_bundle_fits_the_search_looks_once_at_each_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fleet of a few large bundles is searched every minute, and no bundle can move."""
    looks = 0

    def look(*args: Any) -> Candidates:
        nonlocal looks
        looks += 1
        return Candidates(*args)

    monkeypatch.setattr(several_board, "Candidates", look)
    made = fleet([[(0.25, 0.05)] * 2] * 6 + [[(0.3, 0.05)] * 2] * 6)
    assert made.takes is not None
    first = next(try_bands(ground_of(made), made.takes, keeps(made), 0.05, 10**9))
    assert len(first) > 10
    assert not any(first)
    assert 0 < looks <= len(made.usage)


def test_the_only_broker_that_receives_gives_to_none() -> None:
    """It is above the band once it has received."""
    made = fleet([[(0.15, 0.0)] * 2, [(0.45, 0.0)] * 2])
    ground = replace(ground_of(made), receivers=np.array([0]))
    assert find_plan(ground, keeps(made), 0.05, 400_000).steps == (BoardMove(2, 1, 0),)
