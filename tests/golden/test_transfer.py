"""TransferShedder on clusters whose answer can be worked out by hand (Pulsar's own numbers).

A move is written "b5#1 -> b1": the first bundle that b5 lists goes to b1. Pulsar's decisions have
no order; here the bundle that leaves stands before those that come back for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import NOW_MS, Broker, Bundle, cluster
from trimtab.arrays import RATE_IN, THROUGHPUT_IN, THROUGHPUT_OUT, Ints
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings, WeightSettings
from trimtab.shedding.balance import Balance
from trimtab.shedding.top_bundles import TopBundles
from trimtab.shedding.transfer import ShedOutcome, Skip, TransferHistory, judge_balance, shed
from trimtab.state.broker_averages import BrokerAverages, advance
from trimtab.view import View

M = 1e6
"""A million bytes/s."""

DEFAULT = Settings()
DEBUG = [pytest.param(True, id="debug mode"), pytest.param(False, id="otherwise")]


def broker(percent: float, *sizes: float, beside: float = 1) -> Broker:
    """So much of its processor used; lists bundles of these bytes/s and has others beside."""
    bundles = [Bundle((0, 0, 0, size)) for size in sizes]
    return Broker(percent / 100, bundles, traffic=(0, 0, beside, sum(sizes)))


def fleet(**brokers: Broker) -> View:
    """Brokers that have reported once: their averages are what they said."""
    view = cluster(**brokers)
    averages = advance(BrokerAverages(), view.brokers, WeightSettings())
    return replace(view, brokers=replace(view.brokers, averages=averages))


def as_given(view: View) -> Callable[[int], Ints]:
    """Each broker's top bundles in the order given, where `TopBundles` would have another."""
    return lambda row: np.flatnonzero(view.bundles.owner == row)


def judge(
    view: View,
    settings: Settings = DEFAULT,
    *,
    top: Callable[[int], Ints] | None = None,
    hits: int = 3,
) -> ShedOutcome:
    """The cycle after so many hits: by default the fourth in a row acts."""
    return judge_balance(
        view, TransferHistory(hits), settings, top or TopBundles(view, settings).of
    )


def moves(view: View, outcome: ShedOutcome) -> list[str]:
    return [_move(view, each) for each in outcome.sheds]


def _move(view: View, wish: ShedWish) -> str:
    names = view.brokers.names
    number = int(view.bundles.names[wish.bundle].rsplit("_", 1)[1], 16)
    where = "anywhere" if wish.destination is None else names[wish.destination]
    return f"{names[wish.source]}#{number} -> {where}"


def reasons(outcome: ShedOutcome) -> set[str]:
    return {each.reason for each in outcome.sheds}


def deviation_after(view: View, *offloads: tuple[str, str, float]) -> float:
    """Of the loads expected once these bytes/s have gone from the first to the second broker."""
    balance = Balance(view, DEFAULT)
    for busy, idle, moved in offloads:
        source, destination = view.brokers.names.index(busy), view.brokers.names.index(idle)
        pair = balance.next_pair()
        assert pair is not None
        assert pair[:2] == (destination, source)
        carried = float(view.brokers.traffic[[THROUGHPUT_IN, THROUGHPUT_OUT], source].sum())
        balance.expect(destination, source, moved, carried)
    return balance.deviation


def five(b4: float, b5: float) -> View:
    return fleet(
        b1=broker(2, 1 * M, 2 * M),
        b2=broker(4, 1 * M, 3 * M),
        b3=broker(6, 2 * M, 4 * M),
        b4=broker(b4, 2 * M, 6 * M),
        b5=broker(b5, 2 * M, 7 * M),
    )


def test_the_outer_pairs_are_relieved_until_the_deviation_is_small() -> None:
    """Acceptance case D1: 4.4 of b5's 9 MB/s would make it equal to b1, 3.8 of b4's 8 to b2."""
    view = five(80, 90)
    outcome = judge(view)
    assert outcome.mean == pytest.approx(0.364)
    assert outcome.deviation == 0.39827628601261217
    assert moves(view, outcome) == ["b5#1 -> b1", "b4#1 -> b2"]
    assert reasons(outcome) == {Reason.OVERLOADED}
    after = deviation_after(view, ("b5", "b1", 2 * M), ("b4", "b2", 2 * M))
    assert after == 0.24377039989848284


def test_nothing_is_done_before_the_fourth_hit() -> None:
    """Acceptance case D1, from its first call on, as the job asks: hits start again after moves."""
    view, history, said = five(80, 90), TransferHistory(), []
    for _ in range(5):
        wishes, history = shed(view, history, DEFAULT)
        said.append([_move(view, each) for each in wishes])
    assert said == [[], [], [], ["b5#1 -> b1", "b4#1 -> b2"], []]
    assert history == TransferHistory(1)
    assert [judge(view, hits=before).skip for before in (0, 1, 2)] == [Skip.HIT_COUNT] * 3


def test_the_second_pair_stays_where_the_first_is_enough() -> None:
    """Acceptance case D2: b4 at 55 % and b5 at 65 %."""
    view = five(55, 65)
    outcome = judge(view)
    assert outcome.mean == pytest.approx(0.264)
    assert outcome.deviation == 0.2764489102890442
    assert moves(view, outcome) == ["b5#1 -> b1"]


def test_the_middle_broker_has_no_partner() -> None:
    """Acceptance case D3: 2 and 10 times a whole processor are still apart after both pairs."""
    view = five(200, 1000)
    outcome = judge(view)
    assert outcome.mean == pytest.approx(2.424)
    assert outcome.deviation == 3.8633332758124816
    assert moves(view, outcome) == ["b5#1 -> b1", "b4#1 -> b2"]
    after = deviation_after(view, ("b5", "b1", 2 * M), ("b4", "b2", 2 * M))
    assert after == 2.781643776903451


@pytest.mark.parametrize("debug", DEBUG)
def test_small_bundles_come_back_for_a_large_one(debug: bool) -> None:
    """Acceptance case D3, second part: 500 MB/s too much, in bundles of 100, 180 and 220.

    The first two fit. The third brings back b1's 4 smallest, 10 MB/s: without them b1 would carry
    more than b2.
    """
    view = fleet(
        b1=broker(10, 1 * M, 2 * M, 3 * M, 4 * M, 5 * M),
        b2=broker(1000, 100 * M, 180 * M, 220 * M, 250 * M, 250 * M),
    )
    outcome = judge(view, pulsar(debug))
    assert [outcome.mean, outcome.deviation] == pytest.approx([5.05, 4.95])
    assert moves(view, outcome) == [
        *["b2#1 -> b1", "b2#2 -> b1", "b2#3 -> b1"],
        *["b1#1 -> b2", "b1#2 -> b2", "b1#3 -> b2", "b1#4 -> b2"],
    ]
    moved = 500 * M - 10 * M if debug else 500 * M
    expected = 0.050000004900021836 if debug else 0.04999999500002989
    assert deviation_after(view, ("b2", "b1", moved)) == expected


def pulsar(debug: bool) -> Settings:
    """Pulsar checks no swap, and counts what it brings back in debug mode only."""
    return Settings.parse({"transfer.checked_swaps": False, "transfer.credit_swaps": debug})


@pytest.mark.parametrize(
    ("directed", "destination"),
    [pytest.param(True, "b1", id="transfer"), pytest.param(False, "anywhere", id="unload")],
)
def test_bundles_leave_while_they_fit(directed: bool, destination: str) -> None:
    """Acceptance case D4: 38.9 of b2's 100 MB/s would make both equal."""
    view = fleet(
        b1=broker(20, 10 * M, beside=0), b2=broker(90, 5 * M, 10 * M, 20 * M, 65 * M, beside=0)
    )
    outcome = judge(view, Settings.parse({"transfer.directed": directed}))
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.55, 0.35])
    assert moves(view, outcome) == [f"b2#{number} -> {destination}" for number in (1, 2, 3)]
    assert deviation_after(view, ("b2", "b1", 35 * M)) == pytest.approx(0.035)


@pytest.mark.parametrize(
    ("listed", "moved", "skip"),
    [
        pytest.param([30 * M, 60 * M], ["b2#1 -> b1"], None, id="30 of 40 MB/s"),
        pytest.param([50 * M, 40 * M], [], Skip.NO_BUNDLES, id="the first does not fit"),
        pytest.param([0, 30 * M, 60 * M], ["b2#2 -> b1"], None, id="a silent one is passed over"),
    ],
)
def test_the_first_that_does_not_fit_ends_the_pair(
    listed: list[float], moved: list[str], skip: Skip | None
) -> None:
    """Acceptance case D5: 40 of b2's 90 MB/s would make both equal; b1 has nothing to swap."""
    view = fleet(b1=broker(10, beside=10 * M), b2=broker(90, *listed, beside=0))
    outcome = judge(view, top=as_given(view))
    assert outcome.deviation == pytest.approx(0.4)
    assert (moves(view, outcome), outcome.skip) == (moved, skip)
    assert deviation_after(view, ("b2", "b1", 30 * M)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("low", "high", "mean", "deviation"),
    [
        pytest.param(40, 60, 0.5, 0.1, id="40 and 60 %"),
        pytest.param(5, 35, 0.2, 0.15, id="5 % is more than an eighth of 20 %"),
    ],
)
def test_a_small_deviation_is_accepted(
    low: float, high: float, mean: float, deviation: float
) -> None:
    """Acceptance case D6; the idle broker carries half of what the busy one does."""
    view = fleet(b1=broker(low, 4 * M, 6 * M), b2=broker(high, 8 * M, 12 * M))
    outcome = judge(view)
    assert [outcome.mean, outcome.deviation] == pytest.approx([mean, deviation])
    assert (outcome.sheds, outcome.skip, outcome.hits) == ((), Skip.HIT_COUNT, 0)


@pytest.mark.parametrize(
    "traffic",
    [pytest.param(1 * M, id="less than an eighth of 20 MB/s"), pytest.param(0, id="none")],
)
def test_a_broker_without_traffic_is_underloaded(traffic: float) -> None:
    """Acceptance case D7, and item 003-36: 20 and 30 % are close."""
    view = fleet(b1=broker(20, beside=traffic), b2=broker(30, 2 * M, 18 * M, beside=0))
    outcome = judge(view)
    assert outcome.deviation == pytest.approx(0.05)
    assert moves(view, outcome) == ["b2#1 -> b1"]
    assert reasons(outcome) == {Reason.UNDERLOADED}
    assert deviation_after(view, ("b2", "b1", 2 * M)) == pytest.approx(0.02)


@pytest.mark.parametrize(("empty", "sheds"), [(29, True), (31, False)])
def test_a_broker_without_traffic_counts_only_where_it_is_the_least_loaded(
    empty: float, sheds: bool
) -> None:
    """Item 003-36: Pulsar looks at the traffic of the least loaded broker alone."""
    busy = {f"b{i:02}": broker(30, 0.2 * M, 19.8 * M) for i in range(19)}
    outcome = judge(fleet(**busy, empty=broker(empty, beside=0)))
    assert bool(outcome.sheds) == sheds


@pytest.mark.parametrize("debug", DEBUG)
def test_a_swap_makes_two_brokers_equal(debug: bool) -> None:
    """Acceptance case D8: 5 MB/s for 2.4, where 2.6 would make both equal."""
    view = fleet(b1=broker(48, 2.4 * M, 2.4 * M), b2=broker(100, 5 * M, 5 * M))
    outcome = judge(view, pulsar(debug), top=as_given(view))
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.74, 0.26])
    assert moves(view, outcome) == ["b2#1 -> b1", "b1#1 -> b2"]
    moved = 5 * M - 2.4 * M if debug else 5 * M
    expected = 2.58e-8 if debug else 0.23999995
    assert deviation_after(view, ("b2", "b1", moved)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("debug", "next_pair"),
    [
        pytest.param(True, [], id="debug mode: the deviation is 0.03 now"),
        pytest.param(False, ["b3#1 -> b2"], id="otherwise: it seems to be 0.17"),
    ],
)
def test_what_comes_back_decides_about_the_next_pair(debug: bool, next_pair: list[str]) -> None:
    """As case D8 with b2 and b3 between the two, where 0.15 is accepted."""
    view = fleet(
        b1=broker(48, 2.4 * M, 2.4 * M),
        b2=broker(70, 0.3 * M, 9.7 * M),
        b3=broker(78, 0.3 * M, 9.7 * M),
        b4=broker(100, 5 * M, 5 * M),
    )
    settings = pulsar(debug).changed({"transfer.target_deviation": 0.15})
    outcome = judge(view, settings, top=as_given(view))
    assert moves(view, outcome) == ["b4#1 -> b1", "b1#1 -> b4", *next_pair]


def three(others: float) -> View:
    """A broker at 99 % between two others; all carry the same."""
    return fleet(
        b1=broker(others, 1 * M, 9 * M),
        b2=broker(others, 1 * M, 9 * M),
        b3=broker(99, 1 * M, 9 * M),
    )


def test_one_overloaded_broker_is_relieved_though_the_deviation_is_small() -> None:
    """Acceptance case D9: 99 is more than 85 %, and .99 more than .73 + .25."""
    view = three(60)
    outcome = judge(view)
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.73, 0.18385], abs=1e-5)
    assert moves(view, outcome) == ["b3#1 -> b1"]
    assert reasons(outcome) == {Reason.OVERLOADED}


def test_one_overloaded_broker_stays_so_near_the_mean() -> None:
    """Acceptance case D9, second part: .99 is not more than .83 + .25."""
    outcome = judge(three(75))
    assert (outcome.sheds, outcome.skip) == ((), Skip.HIT_COUNT)


def test_a_broker_up_to_the_limit_is_not_overloaded() -> None:
    """Item 003-37: .84 is more than .58 + .25, but not more than 85 %."""
    view = fleet(b1=broker(45, 9 * M), b2=broker(45, 9 * M), b3=broker(84, 1 * M, 9 * M))
    outcome = judge(view)
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.58, 0.18385], abs=1e-5)
    assert (outcome.sheds, outcome.skip) == ((), Skip.HIT_COUNT)


def test_no_swap_helps_where_all_bundles_are_large() -> None:
    """Acceptance case D10: 250 MB/s would make both equal; both have bundles of 500."""
    view = fleet(b1=broker(50, 1, 500 * M), b2=broker(100, 500 * M, 500 * M))
    outcome = judge(view, Settings.parse({"transfer.target_deviation": 0.2}), top=as_given(view))
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.75, 0.25])
    assert (outcome.sheds, outcome.skip) == ((), Skip.NO_BUNDLES)


def test_percentages_are_binary32_here_too() -> None:
    """Acceptance case D11: 10, 20 and 30 % have a mean just above a fifth."""
    view = fleet(b1=broker(10, 1 * M), b2=broker(20, 1 * M), b3=broker(30, 1 * M))
    outcome = judge(view)
    assert (outcome.mean, outcome.deviation) == (0.2000000063578288, 0.08164966587949089)
    assert (outcome.sheds, outcome.skip) == ((), Skip.HIT_COUNT)


def test_one_busy_broker_among_a_hundred() -> None:
    """Acceptance case D12: 99 at 1 % with 1 MB/s, less than an eighth of the last one's 100."""
    idle = {f"b{i:03}": broker(1, 0.3 * M, 0.7 * M) for i in range(99)}
    view = fleet(**idle, busy=broker(100, 30 * M, 70 * M))
    outcome = judge(view)
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.0199, 0.0985], abs=1e-5)
    assert moves(view, outcome) == ["busy#1 -> b000"]
    assert reasons(outcome) == {Reason.UNDERLOADED}


def test_one_idle_broker_among_a_hundred() -> None:
    """Acceptance case D12, second part: 1 % is less than an eighth of 97.04."""
    busy = {f"b{i:03}": broker(98, 30 * M, 70 * M) for i in range(98)}
    view = fleet(**busy, busiest=broker(99, 30 * M, 70 * M), idle=broker(1, 0.3 * M, 0.7 * M))
    outcome = judge(view)
    assert [outcome.mean, outcome.deviation] == pytest.approx([0.9704, 0.0965], abs=1e-4)
    assert moves(view, outcome) == ["busiest#1 -> idle"]
    assert reasons(outcome) == {Reason.UNDERLOADED}


@pytest.mark.parametrize(
    ("target", "idle", "underloaded"),
    [
        pytest.param(0.25, 4.5, True, id="less than 4.597 %, an eighth of the mean"),
        pytest.param(0.25, 4.7, False, id="more than 4.599 %"),
        pytest.param(2.0, 19, True, id="less than 19.05 %, a half"),
        pytest.param(2.0, 20, False, id="more than 19.09 %: never more than a half"),
    ],
)
def test_underloaded_is_below_half_the_target_of_the_mean(
    target: float, idle: float, *, underloaded: bool
) -> None:
    """Item 003-35: mean * min(0.5, target / 2), of ten brokers at 40 % and one; equal traffic."""
    others = {f"b{i}": broker(40, 1 * M, 9 * M) for i in range(10)}
    view = fleet(**others, idle=broker(idle, 1 * M, 9 * M))
    outcome = judge(view, Settings.parse({"loadBalancerBrokerLoadTargetStd": target}))
    assert reasons(outcome) == ({Reason.UNDERLOADED} if underloaded else set())


QUIET = broker(20, 1 * M, 9 * M)
HOT = broker(90, 1 * M, 9 * M)
OLD_MS = NOW_MS - 1_800_001
"""A millisecond more than half an hour ago."""


@pytest.mark.parametrize(
    ("brokers", "skip"),
    [
        pytest.param([QUIET, broker(90, 9 * M)], Skip.NO_BUNDLES, id="the source lists one bundle"),
        pytest.param([QUIET, broker(90)], Skip.NO_LOAD_DATA, id="the source lists none"),
        pytest.param(
            [replace(QUIET, reported_ms=OLD_MS), replace(HOT, reported_ms=OLD_MS)],
            Skip.OUTDATED,
            id="all reports are older than 1800 s",
        ),
        pytest.param(
            [replace(QUIET, reported_ms=0), replace(HOT, reported_ms=0)],
            Skip.NO_BROKERS,
            id="no broker has reported",
        ),
        pytest.param(
            [QUIET, HOT, Broker(reported_ms=0)],
            Skip.NO_LOAD_DATA,
            id="an available broker has not reported",
        ),
        pytest.param(
            [QUIET, replace(HOT, relieved_ms=NOW_MS - 179_000)],
            Skip.COOL_DOWN,
            id="the source shed 179 s before it reported",
        ),
        pytest.param([QUIET, replace(HOT, relieved_ms=NOW_MS - 180_000)], None, id="180 s"),
    ],
)
def test_what_keeps_a_round_from_moving(brokers: list[Broker], skip: Skip | None) -> None:
    """Acceptance case D13."""
    view = fleet(**{f"b{i}": each for i, each in enumerate(brokers, 1)})
    outcome = judge(view)
    assert outcome.skip == skip
    assert moves(view, outcome) == ([] if skip else ["b2#1 -> b1"])


def test_a_round_that_cannot_be_judged_counts_as_neither_hit_nor_miss() -> None:
    """Acceptance case D13: the hits of before stand."""
    resting = fleet(b1=QUIET, b2=replace(HOT, relieved_ms=NOW_MS - 179_000))
    assert judge(resting, hits=2).hits == 2


@pytest.mark.parametrize(
    ("quietest", "hits"),
    [
        pytest.param(1 * M, 0, id="all carry the same"),
        pytest.param(0.1 * M, 1, id="one is underloaded"),
    ],
)
def test_equal_loads_may_have_no_deviation(quietest: float, hits: int) -> None:
    """Acceptance case D15: the variance of three loads of .1 is -1.7e-18, of which no root exists.

    Without a deviation only an underloaded or an overloaded broker is a hit.
    """
    view = fleet(
        b1=broker(10, beside=quietest), b2=broker(10, beside=1 * M), b3=broker(10, beside=1 * M)
    )
    outcome = judge(view, hits=0)
    assert outcome.deviation is not None
    assert math.isnan(outcome.deviation)
    assert outcome.hits == hits


def test_top_bundles_are_listed_from_the_smallest() -> None:
    """Acceptance case E13: by these messages/s, for all have 10 bytes/s."""
    view = cluster(b=Broker(bundles=[Bundle((rate, 0, 10, 0)) for rate in (500, 100_000, 10_000)]))
    top = TopBundles(view, Settings.parse({"transfer.top_bundles": 3})).of(0)
    assert view.bundles.short[RATE_IN, top].tolist() == [500, 10_000, 100_000]
