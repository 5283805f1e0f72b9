"""How far from the expected chance may lead: by the normal distribution and by run lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.load_model.odds import bound, bound_in_event, deviations

rates = st.floats(1e-6, 1e6)
intervals = st.floats(1.0, 3600.0)


def test_thirty_brokers_looked_at_each_minute_need_five_and_a_half_deviations() -> None:
    assert deviations(30, 60.0, 1.0) == pytest.approx(5.4, abs=0.1)


def test_a_pair_that_may_move_half_the_time_needs_none() -> None:
    looks = 2 * 30 * 86_400 / 60
    assert deviations(2, 60.0, looks / 2) == 0.0


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


def test_a_thousand_times_the_bundles_raise_the_bound_by_little() -> None:
    """By the logarithm of a thousand over twice the drift."""
    assert bound(1_200_000, 60.0, 1.0) - bound(1_200, 60.0, 1.0) == pytest.approx(1.92, abs=0.01)


@given(st.integers(3, 1_000_000), st.integers(3, 1_000), intervals)
def test_in_an_event_less_is_asked_for(bundles: int, struck: int, interval: float) -> None:
    assert bound_in_event(bundles, min(struck, bundles)) < bound(bundles, interval, 1.0)


def test_the_more_are_struck_the_less_is_asked_for_of_the_rest() -> None:
    assert bound_in_event(1_200, 100) < bound_in_event(1_200, 3) == pytest.approx(2.50, abs=0.01)
