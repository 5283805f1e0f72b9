"""Says which of the existing names are near one that does not exist."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

_NEAR: Final = 3
"""Names that a sentence lists."""

_LONGEST: Final = 300
"""Characters of a name that are compared: an intent may contain any text."""


def nearby(name: str, existing: Collection[str]) -> str:
    """The names most like ``name``; if none is, those beside it in order of name."""
    if not existing:
        return "there is none"
    if close := get_close_matches(name[:_LONGEST], existing, n=_NEAR):
        return f"did you mean {' or '.join(close)}?"
    ordered = sorted(existing)
    at = min(max(bisect(ordered, name) - _NEAR // 2, 0), max(len(ordered) - _NEAR, 0))
    beside = ", ".join(ordered[at : at + _NEAR])
    return f"there is {beside}" if len(ordered) <= _NEAR else f"there is {beside} and others"
