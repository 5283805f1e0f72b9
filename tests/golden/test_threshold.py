"""ThresholdShedder on clusters whose answer can be worked out by hand (Pulsar's own numbers)."""

from __future__ import annotations

import pytest

from tests.support.clusters import Broker, cluster, throughputs
from tests.support.picking import picked as wishes
from tests.support.picking import ten
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding.threshold import ThresholdHistory, shed
from trimtab.view import View

MB = 1e6


def picked(view: View, **settings: object) -> list[tuple[str, int]]:
    """(broker, number of the bundle from 1 on) in the order of the wishes."""
    return wishes("threshold", view, ThresholdHistory(), **settings)


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        pytest.param((), [10, 9, 8], id="49.4 MiB/s are needed: 20 + 18 + 16"),
        pytest.param((10, 9), [8, 7, 6, 5], id="those that moved lately stay: 16 + 14 + 12 + 10"),
    ],
)
def test_the_largest_bundles_of_a_hot_broker_leave(
    recent: tuple[int, ...], expected: list[int]
) -> None:
    """Acceptance case B3: 110 MiB/s * (0.999000015 - 0.4995 - 0.1 + 0.05)."""
    view = cluster(x=Broker(0.999, ten(*recent)), idle=Broker())
    assert picked(view) == [("x", n) for n in expected]


@pytest.mark.parametrize(
    ("second", "count"),
    [
        pytest.param(12.000002, 3, id="24.000002 MB/s do not cover 24.0000020345"),
        pytest.param(12.000003, 2, id="24.000003 MB/s do"),
    ],
)
def test_need_is_computed_from_binary32_percentages(second: float, count: int) -> None:
    """Acceptance case B4: 60, 30 and 30 % of which 160 MB/s on the hot one.

    The mean is 0.40000002543 because 30 % is 30.000001907 %.
    """
    bundles = throughputs(12 * MB, second * MB, *[1 * MB] * 3)
    hot = Broker(0.6, bundles, traffic=(0, 0, 80 * MB, 80 * MB))
    assert len(picked(cluster(a=hot, b=Broker(0.3), c=Broker(0.3)))) == count


@pytest.mark.parametrize(
    ("traffic", "floor", "count"),
    [
        pytest.param(69, {}, 0, id="10.35 MB/s are less than 10 MiB/s"),
        pytest.param(71, {}, 1, id="10.65 MB/s are more"),
        pytest.param(71, {"loadBalancerBundleUnloadMinThroughputThreshold": 11}, 0, id="11 MiB/s"),
    ],
)
def test_so_little_is_not_worth_a_move(
    traffic: float, floor: dict[str, object], count: int
) -> None:
    """Item 004-14: 60, 30 and 30 %, of which 0.6 - 0.4 - 0.1 + 0.05 should leave."""
    hot = Broker(0.6, throughputs(20 * MB, 20 * MB), traffic=(0, 0, traffic * MB, 0))
    assert len(picked(cluster(a=hot, b=Broker(0.3), c=Broker(0.3)), **floor)) == count


def test_a_broker_that_cooled_down_is_shed_for_nine_rounds() -> None:
    """Acceptance case B5: the average forgets by a tenth a run.

    Pulsar's staleness, kept because it decides.
    """
    bundles = throughputs(*[40 * MB] * 4)
    history = ThresholdHistory()
    counts, averages = [], []
    for usage_a, usage_b in [(0.8, 0.2), *[(0.5, 0.5)] * 8]:
        view = cluster(a=Broker(usage_a, bundles), b=Broker(usage_b))
        sheds, history = shed(view, history, Settings())
        counts.append(len(sheds))
        averages.append(history.usage["a"])
    assert counts == [2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert averages == pytest.approx(
        [0.8, 0.77, 0.743, 0.7187, 0.69683, 0.677147, 0.6594323, 0.64348907, 0.629140163]
    )


def busy(usage: float, bundles: int = 4) -> Broker:
    """A broker with bundles of 40 MB/s."""
    return Broker(usage, throughputs(*[40 * MB] * bundles))


def test_one_idle_broker_among_four_makes_the_others_shed() -> None:
    """Acceptance case B6: 50 % are 12.5 points above the average of 37.5."""
    view = cluster(a=busy(0.5), b=busy(0.5), c=busy(0.5), idle=Broker())
    assert [source for source, _ in picked(view)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("usages", "lower_boundary"),
    [
        pytest.param([0.5, 0.5, 0.5, 0.5, 0.5, 0.0], False, id="one idle among six"),
        pytest.param([0.12, 0.02, 0.01, 0.01], False, id="a small fleet far apart"),
        pytest.param([0.12, 0.02, 0.01, 0.01], True, id="no broker can be 10 points below 4 %"),
        pytest.param([0.0, 0.0], True, id="every broker is idle"),
    ],
)
def test_these_skews_are_not_seen(usages: list[float], lower_boundary: bool) -> None:
    """Acceptance cases B6 and B8."""
    view = cluster(**{f"b{i}": busy(usage) for i, usage in enumerate(usages)})
    assert picked(view, lowerBoundarySheddingEnabled=lower_boundary) == []


@pytest.mark.parametrize(
    ("idle", "sheds"),
    [
        pytest.param(0.68, [("b0", 1)], id="below 78.9 - 10 %"),
        pytest.param(0.70, [], id="above 79.1 - 10 %, and below the mean"),
    ],
)
def test_the_lower_boundary_is_below_the_mean_by_the_threshold(
    idle: float, sheds: list[tuple[str, int]]
) -> None:
    """Item 002-32: its example takes 10 from 82.73 %, the mean and the threshold."""
    view = cluster(**{f"b{i}": busy(0.8, 6) for i in range(10)}, idle=Broker(idle))
    assert picked(view, lowerBoundarySheddingEnabled=True) == sheds


@pytest.mark.parametrize(
    ("bundles", "expected"),
    [
        pytest.param(6, [("b0", 1)], id="240 MB/s x 0.1 x 0.5 = 12 MB/s"),
        pytest.param(4, [], id="160 MB/s would give 8 MB/s, below the 10 MiB/s floor"),
    ],
)
def test_lower_boundary_takes_from_the_first_busiest_broker(
    bundles: int, expected: list[tuple[str, int]]
) -> None:
    """Acceptance case B7: five brokers at 50 % and an idle one."""
    brokers = {f"b{i}": busy(0.5, bundles) for i in range(5)}
    view = cluster(**brokers, idle=Broker())
    assert picked(view, lowerBoundarySheddingEnabled=True) == expected


def test_lower_boundary_takes_from_the_busiest_wherever_it_stands() -> None:
    """Item 002-33: 51 % are below the mean of 41.8 and 10 points."""
    usages = {"b0": 0.5, "b1": 0.5, "b2": 0.51, "b3": 0.5, "b4": 0.5}
    view = cluster(**{name: busy(usage, 6) for name, usage in usages.items()}, idle=Broker())
    assert picked(view) == []
    assert picked(view, lowerBoundarySheddingEnabled=True) == [("b2", 1)]


def test_lower_boundary_says_why() -> None:
    view = cluster(**{f"b{i}": busy(0.5, 6) for i in range(5)}, idle=Broker())
    sheds, history = shed(
        view, ThresholdHistory(), Settings.parse({"threshold.lower_boundary": True})
    )
    assert [s.reason for s in sheds] == [Reason.UNDER_AVERAGE_PEER]
    assert history.usage["idle"] == 0


def test_a_sole_bundle_stays() -> None:
    """Acceptance case B8, the second part."""
    assert picked(cluster(hot=busy(0.9, 1), cold=Broker())) == []


def test_averages_of_brokers_that_left_are_forgotten() -> None:
    _, history = shed(cluster(a=0.5, b=0.5), ThresholdHistory({"gone": 0.9}), Settings())
    assert sorted(history.usage) == ["a", "b"]
