"""Placement on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster, view_of
from trimtab.filters.request import Projection
from trimtab.load import usage
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsage, LeastResourceUsageHistory
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.settings import Settings
from trimtab.view import View


def lasting(usage: float, rate: float, bandwidth_out: float = 0.0) -> Broker:
    """A broker with one bundle of this long-term message rate."""
    bundle = Bundle((1.0, 0, 0, 0), long=(rate, 0, 0, 0))
    return Broker(usage, [bundle], bandwidth_out=bandwidth_out)


def least_rate(view: View, **settings: object) -> list[str]:
    placer = PLACERS["least-long-term-rate"](Projection(view), None, Settings.parse({**settings}))
    return named(view, placer.best("t/n/0x00000000_0xffffffff", everyone(view)))


def everyone(view: View) -> np.ndarray:
    return np.arange(len(view.brokers.names))


def named(view: View, rows: np.ndarray) -> list[str]:
    return [view.brokers.names[row] for row in rows.tolist()]


def test_least_long_term_rate_passes_over_the_overloaded() -> None:
    """Acceptance case E1."""
    assert least_rate(cluster(b1=lasting(0, 100), b2=lasting(0, 200), b3=lasting(0, 300))) == ["b1"]
    assert least_rate(cluster(b1=lasting(0, 400), b2=lasting(0, 200), b3=lasting(0, 300))) == ["b2"]
    hot = cluster(b1=lasting(0, 400), b2=lasting(0.9, 200), b3=lasting(0, 300))
    assert least_rate(hot) == ["b3"]
    assert least_rate(hot, loadBalancerCPUResourceWeight=0) == ["b2"]


def test_least_long_term_rate_takes_anyone_when_all_are_overloaded() -> None:
    """Acceptance case E1, the last part: the round draws one of them."""
    view = cluster(b1=lasting(0.9, 100), b2=lasting(0.95, 200), b3=lasting(0.86, 300))
    assert least_rate(view) == ["b1", "b2", "b3"]


def test_least_long_term_rate_counts_what_is_on_its_way() -> None:
    going = Bundle((0, 0, 0, 0), long=(150, 0, 0, 0), going_to="b1")
    view = cluster(b1=lasting(0, 100), b2=lasting(0, 200), b3=Broker(0, [going]))
    assert least_rate(view) == ["b3"]
    view = cluster(b1=lasting(0, 100), b2=lasting(0, 200), b3=Broker(0.9, [going]))
    assert least_rate(view) == ["b2"]


def with_load(usage: float, bundles: int = 1) -> Broker:
    return Broker(usage, [Bundle((10.0, 0, 0, 0))] * bundles)


def least_usage(
    usages: list[float], history: LeastResourceUsageHistory, settings: Settings
) -> tuple[list[int], LeastResourceUsageHistory]:
    """Numbers of the best brokers, from 1 on; usage 0 is a broker without bundles."""
    view = cluster(**{f"b{i}": with_load(u, 1 if u else 0) for i, u in enumerate(usages, 1)})
    placer = PLACERS["least-resource-usage"](Projection(view), history, settings)
    best = placer.best("t/n/0x00000000_0xffffffff", everyone(view))
    return [row + 1 for row in best.tolist()], placer.remembered()


def test_least_resource_usage_judges_by_averages_that_advance_each_call() -> None:
    """Acceptance case E2: half of the past counts, 5 points below the mean are preferred."""
    settings = Settings.parse({"weights.history": 0.5, "placement.usage_difference": 0.05})
    history = LeastResourceUsageHistory()
    said, averages = [], []
    for usages in (
        [0.10, 0.30, 0.60],
        [0.20, 0.30, 0.50],
        [0.30, 0.30, 0.40],
        [0.35, 0.20, 0.45],
        [0.35, 0.20, 0.0],
    ):
        best, history = least_usage(usages, history, settings)
        said.append(best)
        averages.append(list(history.usage.values()))
    assert said == [[1], [1], [1], [2], [3]]
    assert averages[0] == pytest.approx([0.10, 0.30, 0.60])
    assert averages[1] == pytest.approx([0.15, 0.30, 0.55])
    assert averages[2] == pytest.approx([0.225, 0.30, 0.475])
    assert averages[3] == pytest.approx([0.2875, 0.25, 0.4625])
    assert averages[4] == pytest.approx([0.31875, 0.225, 0.0])


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        pytest.param([0.4, 0.6], [1], id="0.4 + 0.1 <= 0.50000001907, thanks to binary32"),
        pytest.param([0.5, 0.5], [1, 2], id="no broker is below the average"),
        pytest.param([0.1, 0.2, 0.9], [1, 2], id="two are well below 0.4"),
    ],
)
def test_least_resource_usage_takes_all_who_are_well_below_the_average(
    usages: list[float], expected: list[int]
) -> None:
    """Acceptance case E3."""
    best, _ = least_usage(usages, LeastResourceUsageHistory(), Settings())
    assert best == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(0.5, 1.0, [1], id="the first is 25 points below the mean of those known"),
        pytest.param(1.0, 1.0, [1, 2, 3], id="none is: also the one that has not reported"),
    ],
)
def test_least_average_usage(first: float, second: float, expected: list[int]) -> None:
    """Acceptance case E4: the third broker has not reported."""
    view = cluster(b1=Broker(first), b2=Broker(second), b3=Broker(reported_ms=0))
    placer = PLACERS["least-average-usage"](Projection(view), None, Settings())
    best = placer.best("t/n/0x00000000_0xffffffff", everyone(view))
    assert [row + 1 for row in best.tolist()] == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([[1, 2, 3]] * 4, [1, 2, 3, 1], id="in turn"),
        pytest.param(
            [*[[1, 2, 3]] * 2, *[[1, 2, 4]] * 3],
            [1, 2, 4, 1, 2],
            id="the third call's broker is gone: a new order",
        ),
        pytest.param(
            [*[[1, 2, 3]] * 4, *[[2, 4]] * 2], [1, 2, 3, 1, 2, 4], id="a new number: a new order"
        ),
    ],
)
def test_round_robin_takes_one_after_the_other(calls: list[list[int]], expected: list[int]) -> None:
    """Acceptance case E5: the candidates of each call, and who is taken."""
    view, history, taken = cluster(b0=0.0, b1=0.0, b2=0.0, b3=0.0, b4=0.0), RoundRobinHistory(), []
    for candidates in calls:
        placer = PLACERS["round-robin"](Projection(view), history, Settings())
        taken += placer.best("t/n/0x00000000_0xffffffff", np.array(candidates)).tolist()
        history = placer.remembered()
    assert taken == expected


@pytest.mark.parametrize("seed", range(40))
def test_the_mean_is_summed_in_order(seed: int) -> None:
    """One broker stands on the line, where the last bit of the mean decides."""
    usages = np.random.default_rng(seed).random(301)
    view = view_of({f"b{i:03d}": Broker(float(u)) for i, u in enumerate(usages)})
    loads = usage(view.brokers.resources, Settings().weights)
    mean = float(np.cumsum(loads)[-1]) / len(loads)
    difference = mean - float(loads[loads < mean].max())
    settings = Settings.parse({"placement.usage_difference": difference})
    placer = LeastResourceUsage(Projection(view), LeastResourceUsageHistory(), settings)
    best = placer.best("", np.arange(len(loads)))
    assert best.tolist() == [row for row, load in enumerate(loads) if load + difference <= mean]
