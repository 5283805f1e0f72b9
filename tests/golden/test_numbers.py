"""Percentages, averages and positions on the ring, number for number as Pulsar computes them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.clusters import Broker, cluster
from trimtab.arrays import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, MEMORY
from trimtab.intake import averages
from trimtab.load import percentages, unweighted_usage, usage
from trimtab.model import FULL_RANGE_END
from trimtab.settings import WeightSettings
from trimtab.state.broker_averages import BrokerAverages, advance, remember_averages
from trimtab.store.ring import bundle_at, equal_edges, position
from trimtab.view import Brokers


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
    """Acceptance case A1."""
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
    """Acceptance case A14: samples of 10, 20 and 30."""
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


def reported(percent: dict[int, float], throughput: tuple[float, float], at_ms: int) -> Brokers:
    """One broker at these percentages of its resources."""
    brokers = cluster(b=Broker(traffic=(0, 0, *throughput), reported_ms=at_ms)).brokers
    brokers.resources[list(percent), 0] = list(percent.values())
    return brokers


def test_averages_of_a_broker_advance_with_its_reports() -> None:
    """Acceptance case D14: memory has a part in the average, but none in the greatest usage."""
    weights = WeightSettings(0.5, 0.5, 0.5, 0.5, 0.5, history=0.75)
    greatest = WeightSettings(direct_memory=1.0)

    first = {CPU: 1.0, MEMORY: 400.0, DIRECT_MEMORY: 2.0, BANDWIDTH_IN: 3.0, BANDWIDTH_OUT: 4.0}
    brokers = reported(first, (1, 2), at_ms=1000)
    average = advance(BrokerAverages(), brokers, weights)
    assert usage(brokers.resources, greatest).tolist() == [0.04]
    assert average.tolist() == [[2.0], [3.0]]

    past = remember_averages(brokers, average)
    brokers = reported(first | {CPU: 300.0, MEMORY: 100.0}, (5, 6), at_ms=2000)
    average = advance(past, brokers, weights)
    assert usage(brokers.resources, greatest).tolist() == [3.0]
    assert average.tolist() == [[1.875], [5.0]]


def test_a_report_advances_the_averages_of_its_broker_once() -> None:
    weights = WeightSettings(history=0.5)
    past = BrokerAverages(usage={"b": 0.5}, throughput={"b": 4.0}, reported_ms={"b": 1000})
    again = reported({CPU: 100.0}, (1, 1), at_ms=1000)
    assert advance(past, again, weights).tolist() == [[0.5], [4.0]]
    newer = reported({CPU: 100.0}, (1, 1), at_ms=1001)
    assert advance(past, newer, weights).tolist() == [[0.75], [3.0]]


@pytest.mark.parametrize(
    ("topic", "where"),
    [
        pytest.param("123456789", 0xCBF43926, id="A2: the check value of CRC-32"),
        ("persistent://public/default/my-topic", 0x2BAD45F7),
        ("persistent://public/default/my-topic-partition-0", 0x3D4B4235),
        ("persistent://public/default/my-topic-partition-1", 0x4A4C72A3),
        ("non-persistent://public/default/my-topic", 0x831E214A),
        ("persistent://public/default/t1", 0xC1EC4B02),
        ("persistent://my-tenant/my-ns/topic-0", 0xB418851D),
        ("persistent://my-tenant/my-ns/topic-1", 0xC31FB58B),
        ("persistent://my-tenant/my-ns/topic-2", 0x5A16E431),
        ("persistent://my-tenant/my-ns/topic-3", 0x2D11D4A7),
        ("persistent://pulsar/global/ns1/topic-1", 0x2924FAD1),
    ],
)
def test_a_topic_stands_at_the_checksum_of_its_name(topic: str, where: int) -> None:
    """Acceptance cases A2, A3, A4, A5 and A6."""
    assert position(topic) == where


@pytest.mark.parametrize(
    ("topic", "bundle"),
    [
        pytest.param("persistent://public/default/my-topic", "0x00000000_0x40000000", id="A3"),
        pytest.param(
            "persistent://public/default/my-topic-partition-0",
            "0x00000000_0x40000000",
            id="A4, the first",
        ),
        pytest.param(
            "persistent://public/default/my-topic-partition-1",
            "0x40000000_0x80000000",
            id="A4, the second",
        ),
        pytest.param("non-persistent://public/default/my-topic", "0x80000000_0xc0000000", id="A5"),
    ],
)
def test_of_four_bundles_one_holds_a_topic(topic: str, bundle: str) -> None:
    """Acceptance cases A3, A4 and A5."""
    assert str(bundle_at(equal_edges(4), position(topic))) == bundle


@pytest.mark.parametrize(
    ("bundles", "edges"),
    [
        (3, [0, 0x55555555, 0xAAAAAAAA]),
        (4, [0, 0x40000000, 0x80000000, 0xC0000000]),
        (5, [0, 0x33333333, 0x66666666, 0x99999999, 0xCCCCCCCC]),
        (7, [0, 0x24924924, 0x49249248, 0x6DB6DB6C, 0x92492490, 0xB6DB6DB4, 0xDB6DB6D8]),
    ],
)
def test_a_namespace_starts_with_equal_bundles(bundles: int, edges: list[int]) -> None:
    """Acceptance case A7: the last bundle takes the rest."""
    assert equal_edges(bundles) == [*edges, FULL_RANGE_END]
