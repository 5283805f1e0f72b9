"""Formats figures for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_MINUTE, _HOUR = 60.0, 3600.0
_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(number: float) -> float:
    """The number rounded to six digits, for programs."""
    return float(f"{number:.6g}")


def percent(fraction: float) -> str:
    """A fraction as ``71.2 %``."""
    return f"{100 * fraction:.1f} %"


def change(before: float, after: float) -> str:
    """Two fractions as ``71.2 -> 62.9 %``."""
    return f"{100 * before:z.1f} -> {100 * after:z.1f} %"


def points(fraction: float) -> str:
    """A fraction as ``24.1 points``; with two digits if one would show 0."""
    number = 100 * fraction
    return f"{number:.2g} points" if 0.005 <= abs(number) < 1 else f"{number:z.1f} points"


def seconds(number: float) -> str:
    """Seconds as ``25 s``, ``12 min`` or ``3.5 h``."""
    if number < 2 * _MINUTE:
        return f"{number:.0f} s"
    return f"{number / _MINUTE:.0f} min" if number < 2 * _HOUR else f"{number / _HOUR:.1f} h"


def iso(at: int) -> str:
    """A time in epoch milliseconds, as text to read or to type."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def amount(number: float, unit: str) -> str:
    """An amount with its unit, as ``12.5 MB/s``."""
    for step, letter in _STEPS:
        if abs(number) >= step:
            return f"{number / step:.3g} {letter}{unit}"
    return f"{number:.3g} {unit}"


def format_count(number: int, noun: str) -> str:
    """A count with its noun, as ``1 bundle`` or ``4 bundles``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def name_some(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
