"""A bundle that was divided or merged is not waited for: what it carried is in others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import later
from tests.support.clusters import NOW_MS, Broker, Bundle, view_of
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.leap_record import LeapRecord, open_leaps
from trimtab.load_model.estimating.rows import locate_keys
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.lineage import hand_down_leaps, hand_down_shares
from trimtab.load_model.observation import observe_fleet
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View

WHOLE = "t/n/0x00000000_0x40000000"
LOWER, UPPER = "t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000"
PARTS = [f"t/n/0x{at}0000000_0x{at + 1}0000000" for at in range(4)]
OTHER = "t/n/0x40000000_0x80000000"
ELSEWHERE = "t/m/0x00000000_0x20000000"


def estimates(names: list[str]) -> Estimates:
    keys = np.sort(identities(names))
    samples = Samples(keys, np.ones(len(names)), np.ones(len(names), np.int64))
    return follow_samples(Estimates(), samples, 1800.0, 5.0)


def handed(before: list[str], now: Mapping[str, float]) -> dict[str, float]:
    """Share of each bundle that is known once there are those of ``now``, by their traffic."""
    keys = identities([*now])
    order = np.argsort(keys)
    traffic = np.array([*now.values()])[order]
    samples = Samples(keys[order], traffic, np.full(len(now), 2, np.int64))
    left = hand_down_shares(estimates(before), [*now], samples, order)
    at, there = locate_keys(left, identities(names := [*{*before, *now}]))
    return {
        name: round(float(left.level[row]), 6)
        for name, row, is_there in zip(names, at, there, strict=True)
        if is_there
    }


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        pytest.param([WHOLE, OTHER], [LOWER, UPPER, OTHER], {OTHER}, id="in two"),
        pytest.param([WHOLE, OTHER], [*PARTS, OTHER], {OTHER}, id="in four"),
        pytest.param([LOWER, UPPER, OTHER], [WHOLE, OTHER], {OTHER}, id="merged"),
        pytest.param([WHOLE, OTHER], [OTHER], {WHOLE, OTHER}, id="on its way"),
        pytest.param([WHOLE, OTHER], [LOWER, OTHER], {WHOLE, OTHER}, id="one half is seen"),
        pytest.param([WHOLE], [PARTS[0], PARTS[3]], {WHOLE}, id="what is between is not seen"),
        pytest.param([WHOLE], [ELSEWHERE, UPPER], {WHOLE}, id="of two namespaces"),
        pytest.param([], [LOWER, UPPER], set(), id="nothing was known"),
    ],
)
def test_ancestors(before: list[str], now: list[str], left: set[str]) -> None:
    assert handed(before, dict.fromkeys(now, 1.0)).keys() == left


@pytest.mark.parametrize(
    ("before", "now", "shares"),
    [
        pytest.param(
            [WHOLE, OTHER],
            {LOWER: 0.0, UPPER: 0.0, OTHER: 1.0},
            {LOWER: 0.25, UPPER: 0.25, OTHER: 0.5},
            id="nothing counts yet",
        ),
        pytest.param(
            [WHOLE, OTHER],
            {LOWER: 0.2, UPPER: 0.0, OTHER: 1.0},
            {UPPER: 0.4, OTHER: 0.5},
            id="a fifth of the other one's is counted",
        ),
        pytest.param(
            [WHOLE, OTHER],
            {LOWER: 2.0, UPPER: 0.0, OTHER: 1.0},
            {OTHER: 0.5},
            id="one carries it all",
        ),
        pytest.param(
            [WHOLE, ELSEWHERE, OTHER],
            {LOWER: 0.0, UPPER: 0.0, OTHER: 1.0},
            {LOWER: 1 / 6, UPPER: 1 / 6, ELSEWHERE: 1 / 3, OTHER: 1 / 3},
            id="what another one has stays",
        ),
        pytest.param(
            [LOWER, UPPER, OTHER],
            {WHOLE: 0.0, OTHER: 1.0},
            {WHOLE: 2 / 3, OTHER: 1 / 3},
            id="merged",
        ),
        pytest.param([OTHER], {LOWER: 0.0, OTHER: 1.0}, {OTHER: 1.0}, id="it had no parent"),
    ],
)
def test_what_counts_not_yet_has_what_its_parent_had(
    before: list[str], now: dict[str, float], shares: dict[str, float]
) -> None:
    assert handed(before, now) == pytest.approx(shares, abs=1e-5)


def test_a_burst_goes_on_in_what_a_bundle_is_split_into() -> None:
    """A third of what it carries is in the lower half; before it leapt, it carried a third too."""
    names, rows = [WHOLE, OTHER], np.argsort(identities([LOWER, UPPER, OTHER]))
    before, leapt = estimates(names), identities([WHOLE])
    levels, since_ms = (np.array([0.2]), np.array([0.6])), np.array([7])
    leaps = open_leaps(LeapRecord(), leapt, levels, since_ms)
    now = [LOWER, UPPER, OTHER]
    traffic = np.array([10.0, 20.0, 20.0])[rows]
    samples = Samples(identities(now)[rows], traffic, np.full(3, 8, np.int64))
    handed = hand_down_leaps(leaps, before, now, samples, rows)
    at = np.searchsorted(handed.keys, identities([LOWER, UPPER]))
    assert len(handed.keys) == 2
    np.testing.assert_allclose(handed.before[at], [0.2 / 3, 0.4 / 3])
    np.testing.assert_allclose(handed.after[at], [0.2, 0.4])
    np.testing.assert_allclose(handed.worth.sum(), 1.0)
    assert handed.since_ms.tolist() == [7, 7]


def test_two_that_are_split_in_one_round_leave_their_leaps_to_their_own_children() -> None:
    """Nothing is carried by the children of one of them."""
    halves = ["t/n/0x40000000_0x60000000", "t/n/0x60000000_0x80000000"]
    now, parents = [LOWER, UPPER, *halves], [WHOLE, OTHER]
    rows, order = np.argsort(identities(now)), np.argsort(identities(parents))
    levels = np.array([0.3, 0.1])[order], np.array([0.6, 0.4])[order]
    leaps = open_leaps(
        LeapRecord(), identities(parents)[order], levels, np.full(2, 7, dtype=np.int64)
    )
    traffic = np.array([10.0, 20.0, 0.0, 0.0])[rows]
    samples = Samples(identities(now)[rows], traffic, np.full(4, 8, np.int64))
    handed = hand_down_leaps(leaps, estimates(parents), now, samples, rows)
    at = np.searchsorted(handed.keys, identities(now))
    assert len(handed.keys) == 4
    np.testing.assert_allclose(handed.before[at], [0.1, 0.2, 0.0, 0.0])


def test_what_is_on_its_way_keeps_its_leap() -> None:
    leaps = open_leaps(
        LeapRecord(), identities([WHOLE]), (np.array([0.2]), np.array([0.6])), np.array([7])
    )
    samples = Samples(identities([OTHER]), np.ones(1), np.full(1, 8, np.int64))
    before = estimates([WHOLE, OTHER])
    assert hand_down_leaps(leaps, before, [OTHER], samples, np.zeros(1, np.int64)) == leaps


def test_what_is_observed_of_children_is_that_their_parent_leapt() -> None:
    def holding(*names: str) -> View:
        own = [Bundle((0.0, 0.0, 2e8, 2e8), name=name) for name in names]
        return view_of({"a": Broker(0.4, own), "b": Broker(0.4, [replace(own[0], name=OTHER)])})

    _, history = observe_fleet(holding(WHOLE), PlannerHistory(), Settings())
    levels, since_ms = (np.array([0.1]), np.array([0.5])), np.array([NOW_MS])
    leaps = open_leaps(LeapRecord(), identities([WHOLE]), levels, since_ms)
    split = later(holding(LOWER, UPPER), 1)
    _, history = observe_fleet(split, replace(history, leaps=leaps), Settings())
    assert set(history.leaps.keys) == set(identities([LOWER, UPPER]))


def carrying(*loads: Mapping[str, float], usage: float = 0.4) -> View:
    """Brokers a, b, ... that are as busy and carry as much on average; now their bundles' counters
    say that each fills so much."""
    made = {
        name: Broker(
            usage,
            [
                Bundle((0.0, 0.0, each * 5e8, each * 5e8), name=bundle)
                for bundle, each in own.items()
            ],
        )
        for name, own in zip("abc", loads, strict=False)
    }
    view = view_of(made)
    average = np.full_like(view.brokers.traffic, usage * 5e8)
    average[:2] = 0.0
    return replace(view, brokers=replace(view.brokers, smoothed_traffic=average))


THIRD = "t/n/0x80000000_0xc0000000"


def split_late(minutes: int, lower: float = 0.0, upper: float = 0.0) -> Fleet:
    """Three brokers at 40 %; the first one's bundle was split so many minutes ago."""
    others = ({OTHER: 0.4}, {THIRD: 0.4})
    history, view = PlannerHistory(), carrying({WHOLE: 0.4}, *others)
    for minute in range(10):
        _, history = observe_fleet(later(view, minute), history, Settings())
    for minute in range(10, 10 + minutes):
        counted = minute == 9 + minutes
        now = {LOWER: counted * lower, UPPER: counted * upper}
        fleet, history = observe_fleet(later(carrying(now, *others), minute), history, Settings())
    return fleet


@pytest.mark.parametrize("minutes", [1, 2, 3])
def test_a_broker_is_as_busy_while_children_do_not_count_yet(minutes: int) -> None:
    fleet = split_late(minutes)
    assert fleet.usage.tolist() == pytest.approx([0.4] * 3, abs=0.01)
    assert fleet.size[:2].tolist() == pytest.approx([1 / 6] * 2, abs=0.01)
    assert fleet.movable.tolist() == [False, False, True, True]


def test_counters_that_count_at_last_are_believed() -> None:
    fleet = split_late(3, 0.3, 0.1)
    assert fleet.usage.tolist() == pytest.approx([0.4] * 3, abs=0.01)
    assert fleet.size[:2].tolist() == pytest.approx([0.25, 1 / 12], abs=0.01)
    assert fleet.movable.all()


def test_counters_that_never_count_are_believed_after_three_minutes() -> None:
    fleet = split_late(5)
    assert fleet.size[:2].tolist() == pytest.approx([0.0, 0.0], abs=1e-3)
