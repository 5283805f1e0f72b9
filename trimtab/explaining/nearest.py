"""Finds the value of one setting, nearest to the present one, with which a rule no longer applies.

A value is rounded to four digits, away from the present one, so the value shown has the effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from trimtab.settings import Settings, catalogue, contradictions
from trimtab.wire.explanation import Nearest, Value

_DIGITS: Final = 4
_NUDGE: Final = 1e-9
"""Relative margin that exceeds rounding errors on both sides of a comparison."""
_LEAST: Final = 1e-300
"""Smaller numbers do not have four digits to round to."""
_HALVINGS: Final = 60
_KNOWN: Final = {path: (type(default), known) for path, default, known in catalogue()}


def switch_setting(settings: Settings, path: str, to: Value, so_that: str) -> Nearest:
    """A changed setting that is not a number."""
    return Nearest(setting=path, now=_now(settings, path), then=to, so_that=so_that)


def lower_setting(settings: Settings, path: str, limit: float, so_that: str) -> Nearest | None:
    """A value below ``limit``; None if it is below already or must not be."""
    return _past(settings, path, limit, -1, so_that)


def raise_setting(settings: Settings, path: str, limit: float, so_that: str) -> Nearest | None:
    """A value above ``limit``; None if it is above already or must not be."""
    return _past(settings, path, limit, 1, so_that)


def find_setting(
    settings: Settings, path: str, up: bool, changes: Callable[[Settings], bool], so_that: str
) -> Nearest | None:
    """The value from which ``changes`` holds, found by bisection; None if it never does."""
    low, high = _bounds(path)
    near, far = float(cast(float, _now(settings, path))), high if up else low
    if not _holds(settings, path, far, changes):
        return None
    for _ in range(_HALVINGS):
        middle = _between(near, far)
        if _holds(settings, path, middle, changes):
            far = middle
        else:
            near = middle
    found = _past(settings, path, far, 1 if up else -1, so_that)
    return found if found and _holds(settings, path, cast(float, found.then), changes) else None


def closest(*found: Nearest | None) -> Nearest | None:
    """The smallest relative change of a setting; a switch only if there is no other."""
    return min((each for each in found if each is not None), key=_distance, default=None)


def _past(settings: Settings, path: str, limit: float, sign: int, so_that: str) -> Nearest | None:
    kind = _KNOWN[path][0]
    low, high = _bounds(path)
    now = cast(float, _now(settings, path))
    if math.isnan(limit) or (now - limit) * sign > 0:
        return None
    then: int | float
    if kind is int:
        then = math.floor(limit) + 1 if sign > 0 else math.ceil(limit) - 1
    else:
        then = _rounded(limit + sign * _NUDGE * max(abs(limit), abs(now)), sign)
        # Rounding may leave the bounds even if the value itself does not.
        then = min(max(then, low), high) if low < limit < high else then
    if then == now or not low <= then <= high or any(contradictions(_with(settings, path, then))):
        return None
    return Nearest(setting=path, now=now, then=then, so_that=so_that)


def _rounded(value: float, sign: int) -> float:
    if abs(value) < _LEAST or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - _DIGITS + 1)
    steps = value / step
    whole = math.ceil(steps) if sign > 0 else math.floor(steps)
    return float(f"{whole * step:.{_DIGITS}g}")


def _between(near: float, far: float) -> float:
    if near > 0 and far > 0:
        return math.sqrt(near) * math.sqrt(far)
    return (near + far) / 2


def _holds(
    settings: Settings, path: str, value: float, changes: Callable[[Settings], bool]
) -> bool:
    changed = _with(settings, path, value)
    return not any(contradictions(changed)) and changes(changed)


def _with(settings: Settings, path: str, value: float) -> Settings:
    # Much faster than `Settings.changed`, which checks all settings.
    group, name = path.split(".")
    part = replace(getattr(settings, group), **{name: value})
    return replace(settings, **{group: part})


def _now(settings: Settings, path: str) -> Value:
    group, name = path.split(".")
    return cast(Value, getattr(getattr(settings, group), name))


def _bounds(path: str) -> tuple[float, float]:
    return cast(tuple[float, float], _KNOWN[path][1].bounds)


def _distance(nearest: Nearest) -> float:
    if isinstance(nearest.now, str | bool) or isinstance(nearest.then, str):
        return math.inf
    return abs(nearest.then - nearest.now) / max(abs(nearest.now), 1e-9)
