"""Leaps are open until they return, last, or are of what is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from trimtab.arrays import Bools
from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps

MINUTE_MS = 60_000
DAY_MS = 1440 * MINUTE_MS
HORIZON = 64
"""Minutes after which a leap has lasted."""


def opened(
    keys: Sequence[int], minute: float = 0, past: LeapRecord | None = None, up: bool = True
) -> LeapRecord:
    """The record with leaps of these bundles; the level before each is its key, and the one after
    three times as high, or a third."""
    levels = np.array(keys, np.float64), np.array(keys) * (3.0 if up else 1 / 3)
    since_ms = np.full(len(keys), round(minute * MINUTE_MS), np.int64)
    return open_leaps(past or LeapRecord(), np.array(keys, np.uint64), levels, since_ms)


def closed(
    record: LeapRecord, minute: float, *, here: bool = True, back: bool = False
) -> LeapRecord:
    """The record after all of its open leaps were looked at."""

    def all_are(value: bool) -> Bools:
        return np.full(len(record.keys), value, np.bool_)

    return close_leaps(record, all_are(here), all_are(back), round(minute * MINUTE_MS))


def test_leaps_are_kept_by_key_whatever_order_they_come_in() -> None:
    record = opened([3], past=opened([5, 9]))
    assert record.keys.tolist() == record.before.tolist() == [3, 5, 9]
    assert record.worth.tolist() == [1.0, 0.5, 0.5]


def test_so_are_those_of_children() -> None:
    record = opened([5, 7])
    parents, children = np.array([5, 5], np.uint64), np.array([9, 1], np.uint64)
    record = record.hand_down(parents, children, np.array([0.2, 0.8]))
    assert record.keys.tolist() == [1, 7, 9]
    np.testing.assert_allclose(record.before, [4.0, 7.0, 1.0])


def test_both_levels_follow_what_all_others_have() -> None:
    """Else a leap would seem to return, or to go on, as others grow."""
    record = opened([5]).rescale(0.5)
    assert (record.before[0], record.after[0]) == (2.5, 7.5)


@pytest.mark.parametrize(("minute", "lasted"), [(HORIZON - 1, 0), (HORIZON, 1)])
def test_a_leap_has_lasted_after_an_hour(minute: int, lasted: int) -> None:
    record = closed(opened([5]), minute)
    assert (record.lasted, len(record.keys)) == (lasted, 1 - lasted)


@pytest.mark.parametrize("back", [False, True])
def test_what_is_gone_neither_lasted_nor_returned(back: bool) -> None:
    record = closed(opened([5]), HORIZON, here=False, back=back)
    assert not len(record.keys)
    assert (record.lasted, sum(record.returned)) == (0, 0)


@pytest.mark.parametrize(
    ("minute", "place"),
    [
        pytest.param(3.9, 2, id="before four minutes"),
        pytest.param(4.0, 3, id="four minutes"),
        pytest.param(-1.0, 0, id="reports bear the time of another clock"),
    ],
)
def test_what_returned_counts_by_its_age(minute: float, place: int) -> None:
    record = closed(opened([5]), minute, back=True)
    assert np.flatnonzero(record.returned).tolist() == [place]


def test_what_returned_is_remembered_by_how_long_it_lasted_up_or_down() -> None:
    assert closed(opened([5]), 4, back=True).passed.lasted_s.tolist() == [240.0]
    assert closed(opened([5], up=False), 4, back=True).passed.lasted_s.tolist() == [-240.0]


def test_half_of_what_is_counted_is_forgotten_in_a_day_whether_or_not_something_leaps() -> None:
    counted = replace(LeapRecord(at_ms=DAY_MS), returned=(0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0))
    counted = replace(counted, lasted=2.0)
    at_rest = closed(closed(counted, 2000), 2880)
    leaping = closed(opened([5], 2879, closed(counted, 2000)), 2880)
    for record in (at_rest, leaping):
        assert sum(record.returned) == pytest.approx(2.0)
        assert record.lasted == pytest.approx(1.0)


def test_a_clock_that_went_back_makes_nothing_count_more() -> None:
    counted = LeapRecord(returned=(0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0), at_ms=DAY_MS)
    assert sum(closed(opened([5], 0, counted), 0).returned) == 4.0


@pytest.mark.parametrize(("minutes", "passed"), [(HORIZON - 1, [5]), (HORIZON, [])])
def test_a_burst_that_was_seen_for_as_long_as_what_lasts_was_none(
    minutes: int, passed: list[int]
) -> None:
    record = opened([5], minutes, up=False).without(np.ones(1, np.bool_), 0, 200 * MINUTE_MS)
    assert not len(record.keys)
    assert record.passed.keys.tolist() == passed
