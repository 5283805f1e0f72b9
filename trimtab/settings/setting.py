"""A setting: unit, bounds, rationale, Pulsar's key; and the check of a given value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, NamedTuple, cast


class InvalidSettings(ValueError):
    """Settings that must not be used; ``problems`` lists everything that is wrong with them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Alias(NamedTuple):
    """Pulsar's key for a setting, and the conversion of its value to trimtab's unit."""

    key: str
    convert: Callable[[Any], Any] = lambda value: value
    misspelt: str | None = None
    """An older spelling that Pulsar reads while ``key`` still has its default."""


class Setting(NamedTuple):
    """All properties of one setting except its default."""

    unit: str
    bounds: tuple[float, float] | tuple[str, ...] | None
    """Lowest and highest number, or the accepted words; None for a switch."""
    why: str
    """What the value does and what goes wrong at either extreme."""
    alias: Alias | None


def setting(
    default: object,
    unit: str,
    bounds: tuple[float, float] | tuple[str, ...] | None,
    why: str,
    alias: Alias | None = None,
) -> Any:
    """A dataclass field with its Setting as metadata."""
    return field(default=default, metadata={"setting": Setting(unit, bounds, why, alias)})


def problem_of(value: object, kind: type, known: Setting) -> str | None:
    """Why ``value``, in trimtab's unit, cannot be a setting of type ``kind``; None if it can."""
    return wrong_type(value, kind) or _out_of_bounds(value, known)


_LARGEST: Final = 1 << 63
"""JSON and TOML do not bound integers, but the arithmetic needs 64 bits."""

_WORDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def wrong_type(value: object, kind: type) -> str | None:
    """Why ``value`` cannot be of type ``kind``; a whole number may stand for a number."""
    if kind is bool or isinstance(value, bool):
        fits = kind is bool and isinstance(value, bool)
    else:
        fits = isinstance(value, int | float if kind is float else kind)
    if fits and isinstance(value, int) and abs(value) >= _LARGEST:
        return f"must be {_WORDS[kind]} of less than 64 bits"
    return None if fits else f"must be {_WORDS[kind]}, not {value!r}"


def _out_of_bounds(value: object, known: Setting) -> str | None:
    bounds = known.bounds
    if bounds is None:
        return None
    if isinstance(value, str):
        return None if value in bounds else f"must be one of {', '.join(map(str, bounds))}"
    number, (low, high) = cast(float, value), cast(tuple[float, float], bounds)
    if not math.isfinite(number):
        return f"must be finite, not {number!r}"
    if low <= number <= high:
        return None
    return f"must be from {low:g} to {high:g} ({known.unit}), not {number!r}"
