"""How far from the expected chance may lead: by the normal distribution and by run lengths."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.load_model.odds import bound, bound_in_event, deviations, is_event, together

rates = st.floats(1e-6, 1e6)
intervals = st.floats(1.0, 3600.0)


def test_thirty_brokers_looked_at_each_minute_need_five_and_a_half_deviations() -> None:
    assert deviations(30, 60.0, 1.0) == pytest.approx(5.4, abs=0.1)


@pytest.mark.parametrize("times", [0.5, 0.7, 2.0])
def test_a_pair_that_may_move_half_the_time_or_more_needs_none(times: float) -> None:
    looks = 2 * 30 * 86_400 / 60
    assert deviations(2, 60.0, times * looks) == 0.0


@given(st.integers(0, 10_000), st.integers(1, 10_000), intervals, rates)
def test_more_brokers_need_no_fewer_deviations(
    brokers: int, more: int, interval: float, a_month: float
) -> None:
    few = deviations(brokers, interval, a_month)
    assert 0 <= few <= deviations(brokers + more, interval, a_month)


@given(st.integers(2, 10_000), intervals, rates, st.floats(1.0, 1000.0))
def test_fewer_false_moves_need_no_fewer_deviations(
    brokers: int, interval: float, a_month: float, fewer: float
) -> None:
    assert deviations(brokers, interval, a_month) <= deviations(brokers, interval, a_month / fewer)


def test_a_month_without_chance_is_dearer_than_one_with() -> None:
    assert deviations(30, 60.0, 0.1) > deviations(30, 60.0, 1.0) > deviations(10, 60.0, 1.0)


@given(st.integers(0, 1_000_000), st.integers(1, 1_000_000), intervals, rates)
def test_the_bound_grows_with_the_bundles(
    bundles: int, more: int, interval: float, a_month: float
) -> None:
    assert 1.0 <= bound(bundles, interval, a_month) <= bound(bundles + more, interval, a_month)


def test_the_bound_is_reached_by_chance_twice_in_five_months() -> None:
    """Siegmund's mean length of a run to a sum of ``b``, and runs are a tenth as long."""
    b = bound(1_200, 60.0, 1.0)
    run = math.exp(2 * 1.8 * (b + 1.166)) / (2 * 1.8**2)
    assert run / 10 == pytest.approx(2.5 * 1_200 * 30 * 24 * 60)
    assert bound(1_200, 60.0, 2.5) == pytest.approx(b - math.log(2.5) / 3.6)


def test_rounds_without_an_interval_count_as_one_a_second() -> None:
    assert deviations(30, 0.0, 1.0) == deviations(30, 1.0, 1.0)
    assert bound(1_200, 0.0, 1.0) == bound(1_200, 1.0, 1.0)


def test_a_thousand_times_the_bundles_raise_the_bound_by_little() -> None:
    """By the logarithm of a thousand over twice the drift."""
    assert bound(1_200_000, 60.0, 1.0) - bound(1_200, 60.0, 1.0) == pytest.approx(1.92, abs=0.01)


@given(st.integers(3, 1_000_000), st.integers(3, 1_000), intervals)
def test_in_an_event_less_is_asked_for(bundles: int, struck: int, interval: float) -> None:
    assert bound_in_event(bundles, min(struck, bundles)) < bound(bundles, interval, 1.0)


def test_the_more_are_struck_the_less_is_asked_for_of_the_rest() -> None:
    assert bound_in_event(1_200, 100) < bound_in_event(1_200, 3) == pytest.approx(2.50, abs=0.01)


@pytest.mark.parametrize("expected", [1.0, 4.0, 29.0, 100.0])
def test_chance_reaches_the_number_of_an_event_about_once_in_a_million_times(
    expected: float,
) -> None:
    """The tail of Poisson's distribution, summed."""
    least = math.ceil(together(expected))
    terms = (
        math.exp(count * math.log(expected) - expected - math.lgamma(count + 1))
        for count in range(least, 10 * least)
    )
    assert 1e-7 < sum(terms) < 1.2e-6


@pytest.mark.parametrize(
    ("times", "least"), [(8.0, 3), (3.0, 5), (1.0, 10), (0.5, 17)], ids=lambda each: str(each)
)
def test_the_less_is_known_of_other_times_the_more_leaps_are_an_event(
    times: float, least: int
) -> None:
    """None leapt at those other times."""
    assert is_event(least, 0.0, times)
    assert not is_event(least - 1, 0.0, times)


def test_where_no_other_time_is_known_nothing_is_an_event() -> None:
    assert not is_event(1_000, 0.0, 0.0)


def test_what_is_usual_is_no_event_and_four_times_as_many_are() -> None:
    """Six in as many samples; and where only one other time is known, that is hardly usual."""
    assert not is_event(9, 48.0, 8.0)
    # Chance brings 20 five times in a million, and 22 less than once.
    assert not is_event(20, 48.0, 8.0)
    assert is_event(22, 48.0, 8.0)
    assert not is_event(24, 6.0, 1.0)
    assert not is_event(9, 0.0, 8.0, outliers=6.0)


@example(3, 5e-324, 2.0, 0)
@given(st.integers(0, 1_000), st.floats(0, 1_000), st.floats(0, 100), st.integers(0, 100))
def test_more_leaps_at_other_times_make_no_event(
    count: int, earlier: float, times: float, more: int
) -> None:
    if is_event(count, earlier + more, times):
        assert is_event(count, earlier, times)
        assert is_event(count + more, earlier + more, times)
