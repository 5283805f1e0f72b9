"""A broker that does not tell how busy it is seems idle, and gets nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import carrying, destinations, later, wished
from trimtab.arrays import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, Floats
from trimtab.filters.request import Projection
from trimtab.load import find_measured
from trimtab.load_model.history import PlannerHistory
from trimtab.placement import PLACERS
from trimtab.planner import shed
from trimtab.planner.outlook import look_ahead
from trimtab.settings import Settings, WeightSettings
from trimtab.view import View

NEW = "t/n/0xf0000000_0xffffffff"
THREE = {"a": [("t/n", 0.1)] * 6, "b": [("t/n", 0.1)] * 2, "c": [("t/n", 0.1)] * 4}


def without_limit(view: View, row: int, resource: int = CPU) -> View:
    """The view with the limits of all brokers but one, whose use of the resource reads 0; links are
    used a tenth as much as processors."""
    resources, limits = view.brokers.resources.copy(), np.full((5, 3), 100.0)
    resources[BANDWIDTH_OUT] = 0.1 * resources[CPU]
    resources[resource, row] = limits[resource, row] = 0.0
    brokers = replace(
        view.brokers, resources=resources, smoothed_resources=resources, limits=limits
    )
    return replace(view, brokers=brokers)


def figures(of: Mapping[int, list[float]]) -> Floats:
    """(5, n) of the given resources; 0 of others."""
    n = len(next(iter(of.values())))
    return np.array([of.get(resource, [0.0] * n) for resource in range(5)])


@pytest.mark.parametrize(
    ("percent", "limits", "measured"),
    [
        pytest.param({CPU: [50, 0]}, {CPU: [1, 0]}, [True, False], id="the busiest one's"),
        pytest.param({CPU: [50, 60]}, {CPU: [1, 1]}, [True, True], id="all have it"),
        pytest.param({CPU: [0, 0]}, {CPU: [0, 0]}, [True, True], id="none has it"),
        pytest.param(
            {CPU: [50, 50], BANDWIDTH_IN: [5, 0]},
            {CPU: [1, 1], BANDWIDTH_IN: [1, 0]},
            [True, True],
            id="that of one that is hardly used",
        ),
        pytest.param(
            {CPU: [50, 50], BANDWIDTH_IN: [40, 0]},
            {CPU: [1, 1], BANDWIDTH_IN: [1, 0]},
            [True, False],
            id="that of one that may be the busiest",
        ),
    ],
)
def test_usage_is_known_with_the_limits_of_what_is_busy(
    percent: Mapping[int, list[float]], limits: Mapping[int, list[float]], measured: list[bool]
) -> None:
    found = find_measured(figures(percent), figures(limits), WeightSettings())
    assert found.tolist() == measured


def test_what_does_not_count_needs_no_limit() -> None:
    percent, limits = figures({CPU: [50, 0]}), figures({CPU: [1, 0]})
    assert find_measured(percent, limits, WeightSettings(cpu=0.0)).all()


def test_it_takes_no_part_in_plans() -> None:
    view = carrying(THREE)
    assert destinations(view, wished(without_limit(view, 2, BANDWIDTH_IN))) == {"b"}
    assert destinations(view, wished(without_limit(view, 1))) == {"c"}
    _, history = shed(without_limit(view, 1), PlannerHistory(), Settings())
    outlook, _ = look_ahead(later(without_limit(view, 1), 1), history, Settings())
    assert outlook.unmeasured == (1,)


def test_it_is_given_what_needs_a_broker_last() -> None:
    view, history = without_limit(carrying(THREE), 1), PlannerHistory()
    for minute in range(2):
        _, history = shed(later(view, minute), history, Settings())
    placer = PLACERS["least-predicted-usage"](Projection(view), history, Settings())
    assert placer.best(NEW, np.arange(3)).tolist() == [2]
    assert placer.best(NEW, np.array([1])).tolist() == [1]
