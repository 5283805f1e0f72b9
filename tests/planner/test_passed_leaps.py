"""The last leap of each bundle that came back, and how long it lasted."""

from __future__ import annotations

import numpy as np

from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.passed_leaps import PassedLeaps

DAY_MS = 86_400_000


def keys(*names: int) -> Keys:
    return np.array(names, np.uint64)


def note(past: PassedLeaps, key: int, lasted_s: float, now_ms: int = 0) -> PassedLeaps:
    return past.note(keys(key), np.array([lasted_s]), keys(), now_ms)


def lasted(passed: PassedLeaps, key: int, *, up: bool = True) -> float:
    return float(passed.lasted_of(keys(key), np.array([up]))[0])


def test_only_what_leapt_the_same_way_is_told_how_long_that_took() -> None:
    passed = note(note(PassedLeaps(), 7, 480.0), 3, -60.0)
    assert (lasted(passed, 7), lasted(passed, 7, up=False)) == (480.0, 0.0)
    assert (lasted(passed, 3), lasted(passed, 3, up=False)) == (0.0, 60.0)
    assert (lasted(passed, 1), lasted(passed, 5), lasted(passed, 9)) == (0.0, 0.0, 0.0)


def test_the_newest_of_a_bundle_counts() -> None:
    passed = note(note(PassedLeaps(), 7, 480.0), 7, 120.0, now_ms=1)
    assert passed.keys.tolist() == [7]
    assert lasted(passed, 7) == 120.0


def test_it_is_remembered_for_two_days() -> None:
    """A daily job is known by the second time, and by the third."""
    passed = note(PassedLeaps(), 7, 480.0, now_ms=DAY_MS)
    assert lasted(note(passed, 3, 60.0, 3 * DAY_MS), 7) == 480.0
    assert lasted(note(passed, 3, 60.0, 3 * DAY_MS + 1), 7) == 0.0


def test_what_leapt_for_good_is_forgotten() -> None:
    passed = note(PassedLeaps(), 7, 480.0)
    assert lasted(passed.note(keys(), np.zeros(0), keys(7), 1), 7) == 0.0
