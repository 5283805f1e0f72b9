"""Placement on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.request import Projection
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.settings import Settings
from trimtab.view import View


def lasting(usage: float, rate: float, bandwidth_out: float = 0.0) -> Broker:
    """A broker with one bundle of this long-term message rate."""
    bundle = Bundle((1.0, 0, 0, 0), long=(rate, 0, 0, 0))
    return Broker(usage, [bundle], bandwidth_out=bandwidth_out)


def least_rate(view: View, **settings: object) -> list[str]:
    placer = PLACERS["least-long-term-rate"](
        view, Projection(view), None, Settings.parse({**settings})
    )
    return named(view, placer.best("t/n/0x00000000_0xffffffff", everyone(view)))


def everyone(view: View) -> np.ndarray:
    return np.arange(len(view.brokers.names))


def named(view: View, rows: np.ndarray) -> list[str]:
    return [view.brokers.names[row] for row in rows.tolist()]


def test_least_long_term_rate_passes_over_the_overloaded() -> None:
    assert least_rate(cluster(b1=lasting(0, 100), b2=lasting(0, 200), b3=lasting(0, 300))) == ["b1"]
    assert least_rate(cluster(b1=lasting(0, 400), b2=lasting(0, 200), b3=lasting(0, 300))) == ["b2"]
    hot = cluster(b1=lasting(0, 400), b2=lasting(0.9, 200), b3=lasting(0, 300))
    assert least_rate(hot) == ["b3"]
    assert least_rate(hot, loadBalancerCPUResourceWeight=0) == ["b2"]


def test_least_long_term_rate_takes_anyone_when_all_are_overloaded() -> None:
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
    placer = PLACERS["least-resource-usage"](view, Projection(view), history, settings)
    best = placer.best("t/n/0x00000000_0xffffffff", everyone(view))
    return [row + 1 for row in best.tolist()], placer.remembered()


def test_least_resource_usage_judges_by_averages_that_advance_each_call() -> None:
    settings = Settings.parse({"weights.history": 0.5, "placement.usage_difference": 0.05})
    history = LeastResourceUsageHistory()
    said = []
    for usages in (
        [0.10, 0.30, 0.60],
        [0.20, 0.30, 0.50],
        [0.30, 0.30, 0.40],
        [0.35, 0.20, 0.45],
        [0.35, 0.20, 0.0],
    ):
        best, history = least_usage(usages, history, settings)
        said.append(best)
    assert said == [[1], [1], [1], [2], [3]]
    assert list(history.usage.values()) == pytest.approx([0.31875, 0.225, 0.0])


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        pytest.param([0.4, 0.6], [1], id="0.4 + 0.1 <= 0.50000001907, thanks to binary32"),
        pytest.param([0.5, 0.5], [1, 2], id="nobody is below the average"),
        pytest.param([0.1, 0.2, 0.9], [1, 2], id="two are well below 0.4"),
    ],
)
def test_least_resource_usage_takes_all_who_are_well_below_the_average(
    usages: list[float], expected: list[int]
) -> None:
    best, _ = least_usage(usages, LeastResourceUsageHistory(), Settings())
    assert best == expected


def test_round_robin_takes_one_after_the_other() -> None:
    view, history, taken = cluster(a=0.1, b=0.2, c=0.3), RoundRobinHistory(), []
    for candidates in ([0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 2], [0, 2], [1, 2]):
        placer = PLACERS["round-robin"](view, Projection(view), history, Settings())
        taken += named(view, placer.best("t/n/0x00000000_0xffffffff", np.array(candidates)))
        history = placer.remembered()
    # The fifth call takes a new order of two; the last one too, for "a" is no candidate any more.
    assert taken == ["a", "b", "c", "a", "a", "c", "b"]
