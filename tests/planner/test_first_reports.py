"""A start need not wait for second reports where no noise explains how far apart brokers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import carrying, later
from trimtab.arrays import THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from trimtab.load_model.estimating.estimates import UNKNOWN
from trimtab.load_model.first_reports import find_sure_excess, find_sure_part
from trimtab.load_model.history import PlannerHistory
from trimtab.model import NO_EPOCH
from trimtab.ownership import State
from trimtab.plan import ShedWish
from trimtab.planner import shed
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.ownership import Record

UNEVEN = np.linspace(0.2, 0.7, 30).tolist()
"""The usage of each broker."""
EACH = 12
"""Bundles of each broker: noise may explain how far apart two brokers are, but not all of them."""
FULL = 1e9
"""Bytes/s that fill a broker."""


def fleet(usage: Sequence[float]) -> View:
    """Brokers of bundles that are all alike."""
    return carrying({f"b{row:02d}": [("t/n", u / EACH)] * EACH for row, u in enumerate(usage)})


def spread(view: View, wishes: Sequence[ShedWish] = ()) -> float:
    """The range once the wishes are granted."""
    where = view.bundles.owner.copy()
    for wish in wishes:
        assert wish.destination is not None
        where[wish.bundle] = wish.destination
    load = view.bundles.stats[[THROUGHPUT_IN, THROUGHPUT_OUT]].sum(axis=0) / FULL
    return float(np.ptp(np.bincount(where, load, len(view.brokers.names))))


def shed_twice(view: View) -> tuple[Sequence[ShedWish], Sequence[ShedWish], PlannerHistory]:
    """The wishes of two rounds of which nothing is carried out, and the history after them."""
    first, history = shed(view, PlannerHistory(), Settings())
    second, history = shed(later(view, 1), history, Settings())
    return first, second, history


def test_the_surest_part_of_a_plan_is_made_on_first_reports() -> None:
    view, target = fleet(UNEVEN), Settings().planner.target
    wishes, _ = shed(view, PlannerHistory(), Settings())
    assert target < spread(view, wishes) < 0.5 * spread(view)


def test_that_part_is_the_beginning_of_the_plan() -> None:
    """It costs no more moves than a plan that waits for second reports: that one begins alike."""
    first, second, _ = shed_twice(fleet(UNEVEN))
    assert 0 < len(first) < len(second)
    assert [wish.bundle for wish in first] == [wish.bundle for wish in second][: len(first)]


def test_it_makes_no_later_plan_wait() -> None:
    view = fleet(UNEVEN)
    _, history = shed(view, PlannerHistory(), Settings())
    assert (history.unrest, history.planned_ms) == (0.0, 0)
    _, history = shed(later(view, 1), history, Settings())
    assert history.unrest == 1.0


@pytest.mark.parametrize("sigma", [0.2, 0.5])
def test_an_even_fleet_with_noise_is_left_alone_on_first_reports(sigma: float) -> None:
    rng, planned = np.random.default_rng(1), 0
    for _ in range(40):
        usage = [_noisy(rng, sigma) for _ in range(30)]
        view = carrying({f"b{row:02d}": [("t/n", x) for x in b] for row, b in enumerate(usage)})
        planned += bool(shed(view, PlannerHistory(), Settings())[0])
    assert planned == 0


def _noisy(rng: np.random.Generator, sigma: float) -> list[float]:
    """The bundles of a broker that carries as much as any other, with noise."""
    size = rng.lognormal(0, 0.7, 26)
    return list(0.45 * size / size.sum() * rng.lognormal(-(sigma**2) / 2, sigma, 26))


def test_what_is_sure_is_what_noise_leaves_of_the_variance() -> None:
    """Usage of 30 to 70 % in steps has a variance of 0.0172, noise of 3 points one of 0.0009."""
    usage = np.linspace(0.3, 0.7, 10)
    assert find_sure_part(usage, np.full(10, 0.03**2)) == pytest.approx(0.951, abs=0.001)


@pytest.mark.parametrize(
    ("usage", "variance"),
    [
        pytest.param(np.zeros(0), np.zeros(0), id="no broker"),
        pytest.param(np.array([0.5]), np.array([0.01]), id="one broker"),
        pytest.param(np.full(5, 0.5), np.zeros(5), id="all alike"),
        pytest.param(np.array([0.7, 0.1]), np.full(2, 0.06), id="two, of few large bundles"),
        pytest.param(np.linspace(0.3, 0.7, 10), np.full(10, 0.1**2), id="less than chance makes"),
    ],
)
def test_where_noise_may_explain_it_nothing_is_sure(usage: Floats, variance: Floats) -> None:
    assert find_sure_part(usage, variance) == 0


@pytest.mark.parametrize("brokers", [2, 3, 8, 30])
def test_noise_explains_an_even_fleet_of_any_size_as_often_as_is_stated(brokers: int) -> None:
    """One in twenty is found uneven: no fewer, or starts with few brokers wait for nothing."""
    rng = np.random.default_rng(1)
    usage = rng.normal(0.5, UNKNOWN**0.5 / 10, (4000, brokers))
    variance = np.full(brokers, UNKNOWN / 100)
    uneven = sum(find_sure_part(each, variance) > 0 for each in usage)
    assert 0.04 <= uneven / len(usage) <= 0.06


def test_a_start_with_few_brokers_does_not_wait_either() -> None:
    view = fleet([0.66, 0.56, 0.5, 0.42, 0.4, 0.36, 0.32, 0.3])
    wishes, _ = shed(view, PlannerHistory(), Settings())
    assert spread(view, wishes) < 0.5 * spread(view)


def test_one_hot_broker_of_many_is_relieved_on_first_reports() -> None:
    """Among a hundred it hardly shows in how far apart they are; the others stay as they are."""
    view = fleet([0.4, 0.5] * 50 + [0.98])
    wishes, _ = shed(view, PlannerHistory(), Settings())
    assert {view.brokers.names[wish.source] for wish in wishes} == {"b100"}
    assert 0 < len(wishes) <= 3


@pytest.mark.parametrize(
    ("hot", "variance"),
    [
        pytest.param(0.98, 0.04, id="noise may make one of a hundred so hot"),
        pytest.param(0.8, 0.001, id="not near overload"),
    ],
)
def test_a_hot_broker_waits_if_it_may_be_noise_or_has_room(hot: float, variance: float) -> None:
    usage = np.array([0.4, 0.5] * 50 + [hot])
    assert find_sure_excess(usage, np.full(101, variance), near_overload=0.8075) == 0


def test_half_of_a_fleet_need_not_wait_for_the_other_half() -> None:
    """Its mean is nearly that of all; that of two brokers is not."""
    view = fleet(UNEVEN)
    records = {
        f"t/other/{row}": Record(state=State.OWNED, epoch=NO_EPOCH, owner=f"z{row}")
        for row in range(len(UNEVEN))
    }
    wishes, _ = shed(replace(view, records=records), PlannerHistory(), Settings())
    assert spread(view, wishes) < 0.6 * spread(view)
