"""The worked examples of Pulsar's documents: their figures beside trimtab's.

Each test names its items in docs/pulsar-coverage.md. Where a document errs, both figures stand here
and docs/pulsar-differences.md says why.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster, throughputs
from tests.support.picking import picked
from trimtab.arrays import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    MEMORY,
    THROUGHPUT_IN,
)
from trimtab.load import usage
from trimtab.model import FULL_RANGE_END, HashRange
from trimtab.settings import Settings, SplitSettings
from trimtab.shedding.busiest import largest_first, traffic
from trimtab.shedding.threshold import ThresholdHistory, average_usage, mean_of, shed
from trimtab.splitting import DIVIDERS
from trimtab.splitting.request import SplitRequest, children
from trimtab.store.ring import bundle_at, equal_edges, row_at
from trimtab.view import View

MB, GB, MIB = 1e6, 1e9, 1048576.0


def busy(usage: float) -> Broker:
    """A broker with six bundles of 40 MB/s."""
    return Broker(usage, throughputs(*[40 * MB] * 6))


def mean_usage(view: View) -> float:
    return mean_of(average_usage(view.brokers, ThresholdHistory(), Settings()))


@pytest.mark.parametrize(
    ("resource", "key", "default"),
    [
        pytest.param(CPU, "loadBalancerCPUResourceWeight", 1, id="002-36"),
        pytest.param(BANDWIDTH_IN, "loadBalancerBandwidthInResourceWeight", 1, id="002-34"),
        pytest.param(BANDWIDTH_OUT, "loadBalancerBandwidthOutResourceWeight", 1, id="002-35"),
        pytest.param(DIRECT_MEMORY, "loadBalancerDirectMemoryResourceWeight", 0, id="002-38"),
        pytest.param(MEMORY, "loadBalancerMemoryResourceWeight", None, id="002-37: never counts"),
    ],
)
def test_a_resource_counts_by_its_weight(resource: int, key: str, default: float | None) -> None:
    """Items 000-33, 002-34 to 002-38 and 004-01 to 004-04: one at 80 %, all others at 40.

    The documents of older versions count heap memory, whose removal document 004 tells of.
    """
    percent = np.full((5, 1), 40.0)
    percent[resource] = 80.0

    def seen(**weights: object) -> float:
        return float(usage(percent, Settings.parse(weights).weights)[0])

    assert seen() == (0.8 if default else 0.4)
    assert seen(**{key: 1}) == (0.4 if default is None else 0.8)
    assert seen(**{key: 0.75}) == (0.4 if default is None else pytest.approx(0.6))
    assert seen(**{key: 0}) == 0.4


def test_of_40_10_and_10_percent_only_the_first_sheds() -> None:
    """Item 002-29: mean 20 %, line 30 %; only broker1 is above it.

    002-28: the documents bring it to 5 % below the mean, a need of 0.25 of its traffic. The code's
    margin is below the line, at 25 %: 240 MB/s * (0.4 - 0.2 - 0.1 + 0.05) = 36 MB/s, one bundle.
    """
    view = cluster(broker1=busy(0.4), broker2=busy(0.1), broker3=busy(0.1))
    assert mean_usage(view) == pytest.approx(0.2)
    assert picked("threshold", view, ThresholdHistory()) == [("broker1", 1)]


@pytest.mark.parametrize(
    ("usage", "sheds"),
    [
        pytest.param(0.24, [], id="24 % beside a line of 24.7"),
        pytest.param(0.26, [("x", 1)], id="26 % beside a line of 25.3"),
    ],
)
def test_the_line_is_10_points_above_the_mean(usage: float, sheds: list[tuple[str, int]]) -> None:
    """Items 000-38 and 003-32: either would shed more than the minimum of 10 MiB/s."""
    x = Broker(usage, throughputs(*[200 * MB] * 2))
    assert picked("threshold", cluster(x=x, y=busy(0.1), z=busy(0.1)), ThresholdHistory()) == sheds


@pytest.mark.parametrize(
    ("tenth", "mean", "line"),
    [
        pytest.param(0.0, 0.7273, 0.8273, id="002-31: 72.73 and 82.73 %"),
        pytest.param(0.05, 0.7318, 0.8318, id="004-16: 73.18 and 83.18 %"),
    ],
)
def test_one_idle_broker_of_eleven_is_seen_only_by_the_lower_boundary(
    tenth: float, mean: float, line: float
) -> None:
    """Items 002-31, 002-32, 004-16, 004-17: ten brokers at 80 % stay below the line.

    With the lower boundary the first busiest gives 240 MB/s * 0.1 * 0.5 = 12 MB/s: one bundle.
    002-32 compares the idle broker with the mean, 82.73 - 10; the code with the mean less 10.
    """
    view = cluster(**{f"b{i}": busy(0.8) for i in range(10)}, idle=Broker(tenth))
    assert mean_usage(view) == pytest.approx(mean, abs=5e-5)
    assert mean_usage(view) + Settings().threshold.threshold == pytest.approx(line, abs=5e-5)
    assert picked("threshold", view, ThresholdHistory()) == []
    lower = picked("threshold", view, ThresholdHistory(), lowerBoundarySheddingEnabled=True)
    assert lower == [("b0", 1)]


def test_a_score_of_80_with_a_usage_of_50_becomes_77() -> None:
    """Item 004-06: 80 * 0.9 + 50 * 0.1 = 77."""
    _, history = shed(cluster(a=0.5), ThresholdHistory({"a": 0.8}), Settings())
    assert history.usage["a"] == pytest.approx(0.77)


@pytest.mark.parametrize(
    ("largest", "count"),
    [
        pytest.param((0.9, 0.59), 3, id="1.49 GB/s are too little"),
        pytest.param((0.9, 0.61), 2, id="1.51 GB/s are enough"),
    ],
)
def test_80_percent_beside_a_mean_of_60_sheds_1_5_gigabytes(
    largest: tuple[float, ...], count: int
) -> None:
    """Items 004-12 and 004-13: (0.8 - 0.6 - 0.1 + 0.05) * 10 GB = 1.5 GB."""
    sizes = [*largest, *[0.5] * 3]
    bundles = throughputs(*[size * GB for size in sizes])
    hot = Broker(0.8, bundles, traffic=(0, 0, 5 * GB, 5 * GB))
    view = cluster(a=hot, b=Broker(0.5), c=Broker(0.5))
    assert mean_usage(view) == pytest.approx(0.6)
    assert len(picked("threshold", view, ThresholdHistory())) == count


@pytest.mark.parametrize(
    ("largest", "count"),
    [
        pytest.param((8.0, 6.9), 3, id="14.9 % are too little"),
        pytest.param((8.0, 7.1), 2, id="15.1 % are enough"),
    ],
)
def test_95_percent_sheds_15_percent_of_the_traffic(largest: tuple[float, ...], count: int) -> None:
    """Item 002-22: (95 - 85) + 5 = 15 % of 100 MB/s."""
    bundles = throughputs(*[size * MB for size in (*largest, 5.0, 5.0)])
    view = cluster(x=Broker(0.95, bundles, traffic=(0, 0, 50 * MB, 50 * MB)))
    assert len(picked("overload", view)) == count


def test_overload_sheds_as_many_as_cover_the_need_and_by_bytes() -> None:
    """Item 002-40: one document says exactly one, by message rate; the code and 003-30 do not.

    240 MB/s * (1.0 - 0.85 + 0.05) = 48 MB/s: two bundles of 40, not the one with most messages.
    """
    chatty = Bundle((9000.0, 0.0, 1 * MB, 0.0))
    broker = Broker(1.0, [chatty, *throughputs(*[40 * MB] * 6)])
    assert picked("overload", cluster(x=broker)) == [("x", 2), ("x", 3)]


def test_throughput_is_in_and_out() -> None:
    """Item 004-11: a bundle of 10 and 20 MB/s counts 30; a broker of 1 and 2 GB/s counts 3."""
    bundle = Bundle((0.0, 0.0, 10 * MB, 20 * MB))
    view = cluster(x=Broker(bundles=[bundle], traffic=(0, 0, 1 * GB, 2 * GB)))
    ((_, _, sizes),) = largest_first(view, np.array([0]), np.array([THROUGHPUT_IN]))
    assert sizes.tolist() == [30 * MB]
    assert traffic(view.brokers, THROUGHPUT_IN).tolist() == [3 * GB]


def request(
    high: int, *positions: int, wanted: tuple[int, ...] | None = None, low: int = 0
) -> SplitRequest:
    """Topics without traffic."""
    at = np.array(positions, dtype=np.int64)
    return SplitRequest(HashRange(low, high), at, np.zeros((4, len(positions))), wanted)


SIX = (0x10000000, 0x20000000, 0x35000000, 0x65000000, 0x70000000, 0x75000000)


@pytest.mark.parametrize(
    ("algorithm", "bundle", "document", "ours"),
    [
        pytest.param("range_equally_divide", request(0x8000), 0x4000, 0x4000, id="000-30"),
        pytest.param(
            "topic_count_equally_divide",
            request(0x8000, 0x0, 0x5, 0x10, 0x15, 0x20, 0x25),
            0x12,
            0x12,
            id="000-31",
        ),
        pytest.param(
            "range_equally_divide", request(0x80000000), 0x40000000, 0x40000000, id="003-16"
        ),
        pytest.param(
            "topic_count_equally_divide",
            request(0x80000000, *SIX),
            0x50000000,
            0x4D000000,
            id="003-17: the middle of 0x35000000 and 0x65000000; the document takes 35 for 3B",
        ),
        pytest.param(
            "specified_positions_divide",
            request(0x40000000, 0x30000000, 0x35000000, wanted=(0x33000000,)),
            0x33000000,
            0x33000000,
            id="003-18",
        ),
    ],
)
def test_cut_points(algorithm: str, bundle: SplitRequest, document: int, ours: int) -> None:
    """Items 000-30, 000-31, 003-16, 003-17, 003-18.

    Of 003-17 any cut between 0x35000000 and 0x65000000 makes three topics and three.
    """
    assert DIVIDERS[algorithm](bundle, SplitSettings()) == [ours]
    below = [int(np.count_nonzero(bundle.positions < cut)) for cut in (document, ours)]
    assert below[0] == below[1]


TRAFFIC = {
    0x10000000: 1,
    0x15000000: 2,
    0x24000000: 3,
    0x39000000: 4,
    0x58000000: 5,
    0x76000000: 6,
}
"""Hundreds of messages/s, and tens of MiB/s."""


@pytest.mark.parametrize(
    ("messages", "size", "document", "ours"),
    [
        pytest.param(
            450,
            200,
            [0x19500000, 0x31500000, 0x48500000, 0x67000000],
            [0x1C800001, 0x2E800001, 0x48800001, 0x67000001],
            id="003-20: by messages",
        ),
        pytest.param(
            1900, 90, [0x31500000, 0x67000000], [0x2E800001, 0x67000001], id="003-21: by bytes"
        ),
        pytest.param(1100, 110, [0x48500000], [0x48800001], id="003-22: by both at once"),
    ],
)
def test_cuts_by_flow_or_qps(
    messages: float, size: float, document: list[int], ours: list[int]
) -> None:
    """Items 003-19 to 003-23: the same topics are parted, at other positions.

    The document averages hexadecimal digits as if they were decimal; Pulsar adds one to the middle.
    """
    rates = np.array([*TRAFFIC.values()], dtype=np.float64)
    zeros = np.zeros(len(rates))
    traffic = np.array([rates * 100, zeros, rates * 10 * MIB, zeros])
    where = np.array([*TRAFFIC], dtype=np.int64)
    found = DIVIDERS["flow_or_qps_equally_divide"](
        SplitRequest(HashRange(0, 0x80000000), where, traffic),
        SplitSettings(max_rate=messages, max_throughput=size * MIB),
    )
    assert found == ours
    assert np.searchsorted(where, found).tolist() == np.searchsorted(where, document).tolist()


def test_ranges_after_a_split() -> None:
    """Items 000-32 and 003-13: [0, 8000, FFFF] cut at 4000 is [0, 4000, 8000, FFFF]."""
    parts = children(HashRange(0, 0x8000), [0x4000])
    assert [*parts, HashRange(0x8000, 0xFFFF)] == [
        HashRange(*pair) for pair in pairwise((0, 0x4000, 0x8000, 0xFFFF))
    ]


@pytest.mark.parametrize(
    ("where", "bundle"),
    [
        pytest.param(0x0000000F, 0, id="000-02: bundle 1"),
        pytest.param(0x7FFFFFFF, 0, id="000-03: half open"),
        pytest.param(0x80000000, 1, id="000-03: has its lower edge"),
        pytest.param(FULL_RANGE_END, 1, id="000-03: the last one has its end"),
    ],
)
def test_of_two_bundles_one_holds_a_position(where: int, bundle: int) -> None:
    """Items 000-01 to 000-03: [0, 80000000) and [80000000, FFFFFFFF].

    The document takes 0x0000000F for the hash of its topic; Pulsar's CRC-32 is another.
    """
    edges = equal_edges(2)
    assert edges == [0, 0x80000000, FULL_RANGE_END]
    assert row_at(edges, where) == bundle
    assert bundle_at(edges, where) == HashRange(edges[bundle], edges[bundle + 1])
