"""How long leaps are waited for, by those that returned or lasted, and what began together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trimtab.load_model.estimating.doubted_leaps import (
    are_in_event,
    find_first_ends,
    find_recurring,
    find_young,
)
from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps

MINUTE_MS = 60_000
DAY_MS = 1440 * MINUTE_MS


def returned(*minutes: float) -> tuple[float, ...]:
    """The counts of leaps that came back after so many minutes."""
    edges = (0, 1, 2, 4, 8, 16, 32, np.inf)
    counts, _ = np.histogram(minutes, edges)
    return tuple(counts.astype(float).tolist())


def opened(*minutes: float, up: bool = True) -> LeapRecord:
    """The record of leaps that began at these minutes, by one bundle each."""
    count, since_ms = len(minutes), (np.array(minutes) * MINUTE_MS).astype(np.int64)
    levels = np.ones(count), np.full(count, 3.0 if up else 1 / 3)
    return open_leaps(LeapRecord(), np.arange(count, dtype=np.uint64), levels, since_ms)


@pytest.mark.parametrize(
    ("back", "lasting", "minutes"),
    [
        pytest.param([5], 0, 0, id="one proves nothing"),
        pytest.param([5, 5], 0, 16, id="two that were back after four minutes, and before eight"),
        pytest.param([5, 12], 0, 16, id="the longer one counts for the shorter one too"),
        pytest.param([1.5, 1.5, 5, 5], 0, 16, id="most were sooner back, but not all"),
        pytest.param([5, 5], 1, 0, id="one has lasted"),
        pytest.param([5, 5, 5], 1, 16, id="but more came back"),
        pytest.param([40, 40], 0, 64, id="no longer than until a leap counts as lasting"),
    ],
)
def test_a_leap_is_waited_for_twice_as_long_as_most_took_to_come_back(
    back: Sequence[float], lasting: float, minutes: float
) -> None:
    record = LeapRecord(returned=returned(*back), lasted=lasting)
    assert record.wait_s == 60 * minutes


def test_what_leaps_within_five_minutes_after_an_event_belongs_to_it() -> None:
    event = are_in_event(opened(27, *[30] * 5, 34, 36), 3840.0)
    assert event.tolist() == [False, *[True] * 6, False]


def test_open_leaps_tell_of_the_last_hour_however_long_a_fleet_is_known() -> None:
    """Six in that hour, one by one: four that meet are not clearly more. They would be, if it was
    ten days in which no more than six came."""
    record = opened(2, 10, 18, 26, 34, 42, 50, 50, 50, 50)
    assert find_young(record, 51 * MINUTE_MS, -10 * DAY_MS)[-4:].all()


def test_the_rest_of_an_event_is_waited_for_once_some_of_it_came_back() -> None:
    """Ten jobs begin together; they are an event. Two end after five minutes, two after seven: the
    others may go on for twice as long as these did on average."""
    every, record = np.ones(10, np.bool_), opened(*[30] * 10)
    record = close_leaps(record, every, np.arange(10) < 2, 35 * MINUTE_MS)
    assert not find_recurring(record, 35 * MINUTE_MS).any()
    assert not find_young(record, 35 * MINUTE_MS, -DAY_MS).any()
    record = close_leaps(record, every[:8], np.arange(8) < 2, 37 * MINUTE_MS)
    assert find_recurring(record, 41 * MINUTE_MS).all()
    assert find_young(record, 41 * MINUTE_MS, -DAY_MS).all()
    assert not find_recurring(record, 42 * MINUTE_MS).any()


def test_what_was_first_seen_in_a_burst_has_passed_once_it_is_calm_for_as_long() -> None:
    record = opened(4, up=False)
    assert not find_first_ends(record, 7 * MINUTE_MS, 0).any()
    assert find_first_ends(record, 8 * MINUTE_MS, 0).all()


def test_of_a_fleet_known_for_minutes_six_do_not_count_and_those_of_the_event_itself() -> None:
    """What is left of eight and a half minutes is as long as leaps that begin together take: ten
    are an event after one such time without a leap."""
    assert are_in_event(opened(*[8] * 10), 510.0).all()
    assert not are_in_event(opened(*[8] * 9), 510.0).any()
