"""Operator ①: order, duplicates, smoothing, and when a bundle's averages take a sample."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reports import EVERY_REPORT, arrival, bundle, report
from tests.support.reports import snapshot as reported
from trimtab.arrays import CPU, RATE_IN
from trimtab.intake.fold import Arrival, Dropped, fold, fold_latest
from trimtab.intake.latest import Latest, latest_of, with_latest
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire.columns import pack, unpack
from trimtab.wire.reports.decode import LoadReport

ONE, TWO = bundle(0), bundle(1)


def after(*arrivals: Arrival, settings: IntakeSettings = EVERY_REPORT) -> Snapshot:
    told, _ = fold(None, "b:8080", arrivals, settings)
    assert told is not None
    return told


def test_the_newest_report_of_a_shuffled_batch_is_the_one_that_stands() -> None:
    told = after(*(arrival(n, report({ONE: n * 10.0})) for n in (2, 3, 1)))
    assert told.sequence == 3
    assert told.stats[RATE_IN].tolist() == [30.0]


def test_a_duplicate_and_an_older_report_change_nothing() -> None:
    first = after(arrival(5, report({ONE: 7.0})))
    second, dropped = fold(first, "b:8080", [arrival(5), arrival(4)], EVERY_REPORT)
    assert second is first
    assert [verdict for _, verdict in dropped] == [Dropped.OLD, Dropped.DUPLICATE]


def test_a_restarted_broker_starts_a_session_whose_sequence_starts_again() -> None:
    told = after(arrival(90, session=1), arrival(1, report({ONE: 1.0}), session=2, seconds=91))
    assert (told.session, told.sequence) == (2, 1)


def test_an_older_session_is_believed_again_once_the_newer_one_is_silent() -> None:
    """A broker whose clock was set back must not be ignored for ever."""
    newer = after(arrival(1, session=9, seconds=0))
    _, soon = fold(newer, "b:8080", [arrival(1, session=8, seconds=60)], EVERY_REPORT)
    later, none = fold(newer, "b:8080", [arrival(1, session=8, seconds=61)], EVERY_REPORT)
    assert [verdict for _, verdict in soon] == [Dropped.OLD]
    assert none == []
    assert later is not None
    assert later.session == 8


def test_smoothed_figures_lose_half_of_the_difference_each_half_life() -> None:
    told = after(
        arrival(1, report({}, cpu=80.0), seconds=0), arrival(2, report({}, cpu=40.0), seconds=10)
    )
    assert told.resources[CPU] == 40.0
    assert told.smoothed[CPU] == pytest.approx(60.0)


def without_limit(cpu: float) -> LoadReport:
    """A report that does not say how much of the processors there is."""
    said = report({}, cpu)
    return replace(said, resources=np.array([said.resources[0], [-1.0] * 5]))


def test_the_average_of_what_has_no_limit_for_a_while_stays_as_it_was() -> None:
    known = (arrival(1, report({}, cpu=80.0), seconds=0), arrival(2, without_limit(80), seconds=5))
    told = after(*known)
    assert (told.resources[CPU], told.smoothed[CPU]) == (0.0, 80.0)
    told = after(*known, arrival(3, report({}, cpu=40.0), seconds=15))
    assert told.smoothed[CPU] == pytest.approx(60.0)


def test_the_average_of_what_had_no_limit_begins_with_the_first_one() -> None:
    told = after(
        arrival(1, without_limit(80.0), seconds=0), arrival(2, report({}, cpu=40.0), seconds=10)
    )
    assert told.smoothed[CPU] == 40.0


def with_processors(limit: float, cpu: float, start_ms: int = 1) -> LoadReport:
    """A report of a broker with so many percent of processors, which uses ``cpu`` of these."""
    said = report({}, cpu, start_ms)
    resources = said.resources.copy()
    resources[1, CPU] = limit
    return replace(said, resources=resources)


def test_the_average_of_other_hardware_is_of_what_was_used() -> None:
    """It has half of the processors now, and takes as much of them as before."""
    whole, half = with_processors(100.0, 40.0), with_processors(50.0, 40.0, start_ms=2)
    told = after(arrival(1, whole, seconds=0), arrival(2, half, seconds=10))
    assert told.smoothed[CPU] == pytest.approx(80.0)
    told = after(arrival(1, half, seconds=0), arrival(2, whole, seconds=10))
    assert told.smoothed[CPU] == pytest.approx(40.0)


def test_limits_that_change_without_a_start_are_followed_as_usage_is() -> None:
    whole, half = with_processors(100.0, 40.0), with_processors(50.0, 40.0)
    told = after(arrival(1, whole, seconds=0), arrival(2, half, seconds=10))
    assert told.smoothed[CPU] == pytest.approx(60.0)


def test_smoothed_figures_begin_with_the_first_traffic() -> None:
    """An average of what a broker used while its counters read 0 tells nothing of its traffic."""
    told = after(
        arrival(1, report({bundle(0): 0.0}, cpu=80.0), seconds=0),
        arrival(2, report({bundle(0): 9.0}, cpu=40.0), seconds=10),
    )
    assert (told.smoothed[CPU], told.smoothed[5 + RATE_IN]) == (40.0, 9.0)


def test_bundles_are_taken_with_the_first_traffic() -> None:
    told = after(
        arrival(1, report({bundle(0): 0.0}), seconds=0),
        arrival(2, report({bundle(0): 9.0}), seconds=10),
        settings=IntakeSettings(sample_interval=60.0),
    )
    assert told.stats[RATE_IN].tolist() == [9.0]


def test_time_does_not_run_backwards_in_an_average() -> None:
    told = after(
        arrival(1, report({}, cpu=80.0), seconds=10), arrival(2, report({}, cpu=40.0), seconds=5)
    )
    assert told.appended_ms == 10_000
    assert told.smoothed[CPU] == 80.0


def test_averages_are_pulsars_running_means() -> None:
    told = after(*(arrival(n, report({ONE: rate})) for n, rate in enumerate((10.0, 20.0, 30.0))))
    assert told.short[RATE_IN].tolist() == [20.0]
    assert told.samples.tolist() == [3]


def test_a_changed_statistic_is_sampled_once_an_interval() -> None:
    settings = replace(EVERY_REPORT, sample_interval=60.0)
    rates = [(0, 10.0), (10, 20.0), (20, 30.0), (60, 30.0), (70, 50.0)]
    told = after(*(arrival(s, report({ONE: rate})) for s, rate in rates), settings=settings)
    assert told.short[RATE_IN].tolist() == [20.0]
    assert told.stats[RATE_IN].tolist() == [30.0]


def test_a_repeated_statistic_is_not_a_new_sample() -> None:
    told = after(*(arrival(n, report({ONE: 10.0 if n == 0 else 40.0})) for n in range(5)))
    assert told.samples.tolist() == [2]
    assert told.short[RATE_IN].tolist() == [25.0]


def test_an_idle_bundle_keeps_sampling_its_zeros() -> None:
    told = after(*(arrival(n, report({ONE: 90.0 if n == 0 else 0.0})) for n in range(3)))
    assert told.short[RATE_IN].tolist() == [30.0]


def test_a_bundle_that_moved_in_starts_its_averages_and_others_keep_theirs() -> None:
    told = after(arrival(1, report({TWO: 10.0})), arrival(2, report({ONE: 5.0, TWO: 30.0})))
    assert told.bundles == (ONE, TWO)
    assert told.short[RATE_IN].tolist() == [5.0, 20.0]
    assert told.samples.tolist() == [1, 2]


def test_a_heartbeat_keeps_the_bundles_and_renews_the_resources() -> None:
    told = after(arrival(1, report({ONE: 10.0}, cpu=20.0)), arrival(2, report(None, cpu=80.0)))
    assert told.bundles == (ONE,)
    assert told.short[RATE_IN].tolist() == [10.0]
    assert told.resources[CPU] == 80.0


def test_a_snapshot_survives_its_bytes() -> None:
    told = after(arrival(1, report({ONE: 10.0, TWO: 3.0})))
    copy = unpack(pack(told), Snapshot)
    for field in fields(Snapshot):
        before, again = getattr(told, field.name), getattr(copy, field.name)
        assert np.array_equal(before, again), field.name


@given(
    rates=st.lists(st.floats(0, 1e6), min_size=1, max_size=8),
    seed=st.integers(0, 99),
    cut=st.integers(0, 8),
)
def test_any_order_within_batches_gives_the_state_of_the_clean_stream(
    rates: list[float], seed: int, cut: int
) -> None:
    """Duplicated, shuffled within a batch, and split into two batches anywhere."""
    clean = [arrival(n, report({ONE: rate, TWO: 1.0})) for n, rate in enumerate(rates)]
    head, tail = clean[:cut] * 2, clean[cut:] * 2
    random.Random(seed).shuffle(head)
    random.Random(seed).shuffle(tail)
    told, _ = fold(None, "b:8080", head, EVERY_REPORT)
    told, _ = fold(told, "b:8080", tail, EVERY_REPORT)
    assert told is not None
    assert pack(told) == pack(after(*clean))


AT_TIMES = replace(EVERY_REPORT, sample_interval=60.0)


def takes(*seconds: int, rate: float = 10.0) -> list[int]:
    """Of reports at these seconds, each with other statistics, those whose bundles are taken."""
    known, taken = after(arrival(0, report({ONE: rate}), seconds=seconds[0])), [seconds[0]]
    for number, second in enumerate(seconds[1:], 1):
        said = arrival(number, report({ONE: rate + number}), seconds=second)
        recall = partial(replace, known)
        folded = fold_latest(latest_of(known), recall, "b:8080", [said], AT_TIMES)
        if folded.snapshot is not None:
            known = folded.snapshot
            taken.append(second)
        elif folded.latest is not None:
            known = with_latest(known, folded.latest)
    return taken


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        pytest.param(range(0, 130, 10), [0, 60, 120], id="six in an interval"),
        pytest.param(range(1, 150, 23), [1, 70, 139], id="no multiple of it"),
        pytest.param([0, 59, 118, 177], [0, 59, 118, 177], id="a little early each time"),
        pytest.param([0, 300, 600], [0, 300, 600], id="seldom"),
    ],
)
def test_bundles_are_taken_before_their_statistics_are_old(
    seconds: list[int], taken: list[int]
) -> None:
    assert takes(*seconds) == taken


def test_a_report_in_between_changes_the_brokers_own_figures_alone() -> None:
    first = after(arrival(1, report({ONE: 10.0}, cpu=20.0)), settings=AT_TIMES)
    second, _ = fold(first, "b:8080", [arrival(2, report({ONE: 90.0}, cpu=80.0))], AT_TIMES)
    assert second is not None
    assert second.resources[CPU] == 80.0
    assert second.stats is first.stats
    assert second.sequence == 2


def test_a_report_with_other_bundles_is_taken_at_once() -> None:
    rates = ({ONE: 10.0}, {ONE: 10.0, TWO: 5.0}, {TWO: 6.0})
    told = after(*(arrival(n, report(each)) for n, each in enumerate(rates)), settings=AT_TIMES)
    assert told.bundles == (TWO,)
    assert told.stats[RATE_IN].tolist() == [6.0]


@given(
    gaps=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    cuts=st.sets(st.integers(0, 12)),
    names=st.lists(st.sampled_from([(ONE,), (TWO,), (ONE, TWO), None]), min_size=12, max_size=12),
)
def test_what_is_stored_apart_is_the_snapshot_of_one_batch(
    gaps: list[int], cuts: set[int], names: list[tuple[str, ...] | None]
) -> None:
    """However the reports are cut into batches, with bundles that come and go, and heartbeats."""
    seconds = np.cumsum(gaps).tolist()
    clean = [
        arrival(n, report(None if own is None else dict.fromkeys(own, n + 1.0)), seconds=second)
        for n, (second, own) in enumerate(zip(seconds, names, strict=False))
    ]
    latest: Latest | None = None
    snapshot = reported("b:8080", {})
    for number, said in enumerate(clean):
        batch = [said] if number in cuts else [said, said]
        folded = fold_latest(latest, partial(replace, snapshot), "b:8080", batch, AT_TIMES)
        latest, snapshot = folded.latest, folded.snapshot or snapshot
    assert latest is not None
    assert pack(with_latest(snapshot, latest)) == pack(after(*clean, settings=AT_TIMES))
