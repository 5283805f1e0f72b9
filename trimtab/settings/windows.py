"""Maintenance windows: times of the week, UTC, in which strategies may act or may not.

windows = entry, entry, ...        an entry: [not] [days] hh:mm-hh:mm      days: mon, mon-fri, ...
A minute is open if an entry without ``not`` has it, or if there is no such entry. A ``not`` entry
closes its minutes in any case. An entry without days holds on every day. One that ends at or before
its beginning goes on into the next day; 24:00 is the day's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES: Final = 24 * 60
_WEEK_MINUTES: Final = 7 * _DAY_MINUTES
_EPOCH_DAY: Final = 3
"""1970-01-01 was a Thursday."""
LONGEST: Final = 1000
"""Characters of all windows, which each round reads."""
_ENTRY: Final = re.compile(
    r"(?P<shut>not\s+)?(?:(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?\s+)?"
    r"(?P<from>\d{2}:\d{2})-(?P<to>\d{2}:\d{2})"
)


class _Entry(NamedTuple):
    shut: bool
    days: frozenset[int]
    start: int
    """Minute of the day."""
    minutes: int

    def holds(self, minute: int) -> bool:
        """Whether a minute of the week is in it."""
        for back in (0, 1):
            day = (minute // _DAY_MINUTES - back) % 7
            since = (minute - day * _DAY_MINUTES - self.start) % _WEEK_MINUTES
            if day in self.days and since < self.minutes:
                return True
        return False


def is_open(windows: str, now_ms: int) -> bool:
    """Whether strategies may act at a time (epoch ms); ``windows`` must be valid."""
    entries = _entries(windows)
    minute = (now_ms // 60_000 + _EPOCH_DAY * _DAY_MINUTES) % _WEEK_MINUTES
    allowing = [entry for entry in entries if not entry.shut]
    allowed = not allowing or any(entry.holds(minute) for entry in allowing)
    return allowed and not any(entry.shut and entry.holds(minute) for entry in entries)


def opens_ms(windows: str, now_ms: int) -> int | None:
    """When it is open next, now included (epoch ms); None if it never is."""
    if is_open(windows, now_ms):
        return now_ms
    minute = now_ms // 60_000
    later = (60_000 * (minute + more) for more in range(1, _WEEK_MINUTES + 1))
    return next((at for at in later if is_open(windows, at)), None)


def window_problems(windows: str) -> Iterator[str]:
    """What is wrong with windows; nothing if they are empty."""
    if len(windows) > LONGEST:
        yield f"have {len(windows)} characters, and {LONGEST} at most"
        return
    for text in _texts(windows):
        if isinstance(found := _parse(text), str):
            yield f"{text!r} {found}"


def _texts(windows: str) -> list[str]:
    return [text.strip() for text in windows.split(",") if text.strip()]


@lru_cache(maxsize=64)
def _entries(windows: str) -> tuple[_Entry, ...]:
    found = map(_parse, _texts(windows))
    return tuple(entry for entry in found if isinstance(entry, _Entry))


def _parse(text: str) -> _Entry | str:
    """The entry, or what is wrong with it."""
    found = _ENTRY.fullmatch(text)
    if found is None:
        return "is not [not] [days] hh:mm-hh:mm, as in: not mon-fri 08:00-18:00"
    first, last = found["first"] or "mon", found["last"] or found["first"] or "sun"
    if not {first, last} <= {*_DAYS}:
        return f"names a day that is none of {', '.join(_DAYS)}"
    start, end = _minute(found["from"]), _minute(found["to"])
    if start is None or end is None or start == _DAY_MINUTES:
        return "names a time that is not within 00:00 and 24:00"
    low, high = _DAYS.index(first), _DAYS.index(last)
    days = frozenset((low + more) % 7 for more in range((high - low) % 7 + 1))
    return _Entry(bool(found["shut"]), days, start, (end - start - 1) % _DAY_MINUTES + 1)


def _minute(text: str) -> int | None:
    """The minute of the day; None if there is none such."""
    hour, minute = map(int, text.split(":"))
    found = 60 * hour + minute
    return found if minute < 60 and found <= _DAY_MINUTES else None
