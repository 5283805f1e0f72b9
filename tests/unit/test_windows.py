"""Maintenance windows against a plain twin that lists every minute of the week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.settings.windows import LONGEST, is_open, opens_ms, window_problems

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
times = st.integers(0, 24 * 60).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
entries = st.tuples(
    st.booleans(),
    st.none() | st.sampled_from(DAYS),
    st.none() | st.sampled_from(DAYS),
    times.filter(lambda each: each != "24:00"),
    times,
)


def written(shut: bool, first: str | None, last: str | None, start: str, end: str) -> str:
    days = "" if first is None else f"{first}-{last} " if last else f"{first} "
    return f"{'not ' if shut else ''}{days}{start}-{end}"


def minutes_of(first: str | None, last: str | None, start: str, end: str) -> set[int]:
    """The minutes of the week of one entry, walked one by one."""
    day = DAYS.index(first) if first else 0
    until = DAYS.index(last) if last and first else (day if first else 6)
    found = set[int]()
    while True:
        minute = 60 * int(start[:2]) + int(start[3:])
        stop = 60 * int(end[:2]) + int(end[3:])
        at = 24 * 60 * day + minute
        while True:
            found.add(at % (7 * 24 * 60))
            at, minute = at + 1, minute + 1
            if minute % (24 * 60) == stop % (24 * 60):
                break
        if day == until:
            return found
        day = (day + 1) % 7


@given(st.lists(entries, max_size=4), st.integers(0, 7 * 24 * 60 - 1))
def test_a_minute_is_open_as_the_list_of_all_minutes_says(
    found: list[tuple[bool, str | None, str | None, str, str]], minute: int
) -> None:
    windows = ", ".join(written(*entry) for entry in found)
    assert not list(window_problems(windows))
    allowing = [minutes_of(*entry[1:]) for entry in found if not entry[0]]
    shut = [minutes_of(*entry[1:]) for entry in found if entry[0]]
    expected = (not allowing or any(minute in each for each in allowing)) and not any(
        minute in each for each in shut
    )
    at = round((MONDAY + timedelta(minutes=minute)).timestamp() * 1000)
    assert is_open(windows, at) is expected


@pytest.mark.parametrize(
    ("windows", "at", "open_"),
    [
        ("", "2026-11-25T12:00", True),
        ("mon-fri 22:00-06:00", "2026-11-25T05:59", True),
        ("mon-fri 22:00-06:00", "2026-11-25T06:00", False),
        ("mon-fri 22:00-06:00", "2026-11-28T05:00", True),
        ("mon-fri 22:00-06:00", "2026-11-29T23:00", False),
        ("not fri 16:00-20:00", "2026-11-27T16:00", False),
        ("not fri 16:00-20:00", "2026-11-27T20:00", True),
        ("sat 00:00-24:00, not sat 12:00-13:00", "2026-11-28T12:30", False),
        ("fri-mon 00:00-24:00", "2026-11-29T12:00", True),
        ("fri-mon 00:00-24:00", "2026-11-25T12:00", False),
    ],
)
def test_windows_at_times_that_a_calendar_shows(windows: str, at: str, open_: bool) -> None:
    ms = round(datetime.fromisoformat(f"{at}+00:00").timestamp() * 1000)
    assert is_open(windows, ms) is open_


def test_the_next_opening_is_told_and_that_there_is_none() -> None:
    noon = round(datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC).timestamp() * 1000)
    opens = opens_ms("mon-fri 22:00-06:00", noon)
    assert opens == round(datetime(2026, 11, 25, 22, tzinfo=UTC).timestamp() * 1000)
    assert opens_ms("", noon) == noon
    assert opens_ms("not 00:00-24:00", noon) is None


def test_all_that_is_wrong_is_told_at_once() -> None:
    problems = list(window_problems("at night, mun 00:00-01:00, mon 25:00-26:00, fri 10:00-11:00"))
    assert [text.split(" ")[0] for text in problems] == ["'at", "'mun", "'mon"]
    assert len(list(window_problems("x" * (LONGEST + 1)))) == 1
