"""A bundle that was divided or merged is not waited for: what it carried is in others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import later
from tests.support.clusters import NOW_MS, Broker, Bundle, view_of
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.leap_record import LeapRecord, open_leaps
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.lineage import drop_ancestors, hand_down_leaps
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


def kept(before: list[str], now: list[str]) -> set[str]:
    keys = identities(now)
    order = np.argsort(keys)
    left = drop_ancestors(estimates(before), now, keys[order], order)
    return {name for name in before if identities([name])[0] in left.keys}


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
    assert kept(before, now) == left


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
