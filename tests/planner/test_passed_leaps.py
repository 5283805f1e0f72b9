"""The last leap of each bundle that came back, and how long it lasted."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.passed_leaps import PassedLeaps

MINUTE_MS = 60_000
DAY_MS = 1440 * MINUTE_MS


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


@pytest.mark.parametrize(
    ("began", "up", "seconds"),
    [
        pytest.param([10], True, [360], id="three of four came back"),
        pytest.param([9, 11], True, [360, 360], id="a round later, or earlier"),
        pytest.param([10] * 9, True, [360] * 9, id="three of twelve"),
        pytest.param([10] * 10, True, [0] * 10, id="three of thirteen"),
        pytest.param([10, 12], True, [360, 0], id="one began later"),
        pytest.param([10, 10], False, [0, 0], id="in the other direction"),
        pytest.param([6, 6], True, [0, 0], id="where two came back"),
    ],
)
def test_what_leapt_with_some_that_came_back_is_expected_to_do_as_they_did(
    began: list[int], up: bool, seconds: list[float]
) -> None:
    """Three that leapt up at minute 10 lasted for five, six and seven minutes; two at minute 6."""
    passed = note(PassedLeaps(), 9, -60.0, 11 * MINUTE_MS)
    for key, minute, minutes in ((3, 10, 6), (4, 10, 5), (7, 10, 7), (5, 6, 5), (8, 6, 5)):
        passed = note(passed, key, 60.0 * minutes, (minute + minutes) * MINUTE_MS)
    directions, since_ms = np.full(len(began), up), MINUTE_MS * np.array(began)
    assert passed.lasted_beside(directions, since_ms).tolist() == seconds


def test_leaps_down_that_came_back_tell_of_leaps_down() -> None:
    passed = note(PassedLeaps(), 3, 300.0, 15 * MINUTE_MS)
    for key in (7, 8, 9):
        passed = note(passed, key, -360.0, 16 * MINUTE_MS)
    up, since_ms = np.array([True, False]), np.full(2, 10 * MINUTE_MS)
    assert passed.lasted_beside(up, since_ms).tolist() == [0.0, 360.0]
