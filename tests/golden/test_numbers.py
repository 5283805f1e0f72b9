"""Percentages, usage and running averages, number for number as Pulsar computes them."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab import averages
from trimtab.load import percentages, unweighted_usage, usage
from trimtab.settings import WeightSettings
from trimtab.view import CPU, DIRECT_MEMORY, MEMORY


@pytest.mark.parametrize(
    ("used", "limit", "percent"),
    [
        (30, 100, 30.000001907348633),
        (1, 3, 33.333335876464844),
        (999, 1000, 99.9000015258789),
        (84.9, 100, 84.9000015258789),
        (85, 100, 85.0),
        (140, 100, 140.0),
        (7, 0, 0.0),
        (7, -1, 0.0),
        (-5, 100, -5.0),
    ],
)
def test_percentages_are_binary32(used: float, limit: float, percent: float) -> None:
    assert percentages(np.array([used]), np.array([limit])).tolist() == [percent]


def test_usage_is_the_highest_weighted_resource_without_heap() -> None:
    resources = np.zeros((5, 1))
    resources[CPU], resources[MEMORY], resources[DIRECT_MEMORY] = 60.0, 99.0, 80.0
    weights = WeightSettings(memory=1.0, direct_memory=0.5)
    assert usage(resources, weights).tolist() == [0.6]
    assert usage(resources, WeightSettings(cpu=0.5, direct_memory=0.5)).tolist() == [0.4]


def test_unweighted_usage_stays_binary32() -> None:
    resources = np.zeros((5, 1))
    resources[CPU] = percentages(np.array([7.0]), np.array([10.0]))
    assert float(unweighted_usage(resources)[0]) == 0.699999988079071


@pytest.mark.parametrize(("most", "expected"), [(10, [10.0, 15.0, 20.0]), (2, [10.0, 15.0, 22.5])])
def test_the_first_sample_replaces_the_defaults(most: int, expected: list[float]) -> None:
    values = np.array(averages.DEFAULT_STATS)[:, np.newaxis]
    n = np.zeros(1, dtype=np.int64)
    said = []
    for given in (10.0, 20.0, 30.0):
        values, n = averages.sample(values, n, np.full((4, 1), given), np.array([True]), most)
        said.append(float(values[0, 0]))
    assert said == expected


def test_only_marked_bundles_get_a_sample() -> None:
    values, n = averages.sample(
        np.full((4, 2), 10.0),
        np.array([1, 1]),
        np.full((4, 2), 20.0),
        np.array([True, False]),
        averages.SHORT_SAMPLES,
    )
    assert values[0].tolist() == [15.0, 10.0]
    assert n.tolist() == [2, 1]


def test_decay_halves_the_past_in_a_half_life() -> None:
    old = np.array([8.0, np.nan])
    assert averages.decay(old, np.array([0.0, 5.0]), 30.0, 30.0).tolist() == [4.0, 5.0]
    assert averages.decay(old, np.array([0.0, 5.0]), 60.0, 30.0).tolist() == [2.0, 5.0]
