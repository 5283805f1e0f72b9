"""An event, and its return, make the next plan wait as one plan does, however many answer them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps
from trimtab.load_model.event_answers import continues_answer
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.wariness import Made, note_plan, unrest_of
from trimtab.settings import Settings

MINUTE_MS = 60_000
SETTINGS = Settings()
BEGINS, ENDS = 100, 160
"""Minutes of a fleet in which a tenant's consumers read an hour back."""
COOL_DOWN = int(SETTINGS.round.grace_period / 60)


def leapt(
    record: LeapRecord, first: int, count: int, minute: int, after: float = 0.003
) -> LeapRecord:
    """The record with so many bundles that began in this minute to carry three times as much."""
    keys = np.arange(first, first + count, dtype=np.uint64)
    levels = np.full(count, 0.001), np.full(count, after)
    return open_leaps(record, keys, levels, np.full(count, minute * MINUTE_MS))


def ended(record: LeapRecord, minute: int) -> LeapRecord:
    """The record once all of them carry in this minute what they did before."""
    all_of_them = np.full(len(record.keys), True)
    return close_leaps(record, all_of_them, all_of_them, minute * MINUTE_MS)


def planned(leaps: LeapRecord, minute: int) -> PlannerHistory:
    """The history of a fleet that is known since minute 0, whose last plan was in this one."""
    return PlannerHistory(leaps=leaps, planned_ms=minute * MINUTE_MS, since_ms={"a": 0})


@pytest.mark.parametrize(
    ("last", "now", "goes_on"),
    [
        pytest.param(90, 102, False, id="the first plan for it"),
        pytest.param(102, 103, True, id="the second corrects the first"),
        pytest.param(100, 101, True, id="where the first was made as it began"),
        pytest.param(102, 150, True, id="as long as it goes on"),
        pytest.param(102, 160, True, id="what came back undoes it"),
        pytest.param(160, 189, True, id="within a cool-down that is corrected"),
        pytest.param(160, 190, False, id="what comes later is another reason"),
        pytest.param(90, 160, False, id="no plan answered it: there is nothing to undo"),
    ],
)
def test_a_plan_goes_on_with_an_event_until_a_cool_down_after_its_end(
    last: int, now: int, goes_on: bool
) -> None:
    leaps = leapt(LeapRecord(), 0, 20, BEGINS)
    if now >= ENDS:
        leaps = ended(leaps, ENDS)
    assert continues_answer(planned(leaps, last), SETTINGS, now * MINUTE_MS) == goes_on


@pytest.mark.parametrize("over", [False, True])
def test_few_bundles_that_leap_are_no_event_nor_as_many_that_fall(over: bool) -> None:
    leaps = leapt(LeapRecord(lasted=9.0), 0, 2, BEGINS)
    leaps = leapt(leaps, 2, 2, BEGINS, after=0.0003)
    history = planned(ended(leaps, 103) if over else leaps, 102)
    assert not continues_answer(history, SETTINGS, 103 * MINUTE_MS)


@pytest.mark.parametrize(("known", "goes_on"), [(90, False), (0, True)])
def test_in_a_fleet_known_for_ten_minutes_five_may_meet_by_chance(
    known: int, goes_on: bool
) -> None:
    leaps = leapt(LeapRecord(lasted=9.0), 0, 5, BEGINS)
    history = replace(planned(leaps, BEGINS), since_ms={"a": known * MINUTE_MS})
    assert continues_answer(history, SETTINGS, BEGINS * MINUTE_MS) == goes_on


def test_how_often_bundles_leapt_long_ago_does_not_matter() -> None:
    """A hundred of the thousand bundles that leapt came back, three hours before the event."""
    leaps = LeapRecord(lasted=900.0)
    for at in range(100):
        leaps = ended(leapt(leaps, 100 + at, 1, at * 60 // 100), 60)
    history = planned(leapt(leaps, 0, 5, 240), 242)
    assert continues_answer(history, SETTINGS, 300 * MINUTE_MS)


def test_an_event_that_may_pass_is_believed_by_no_plan() -> None:
    """The same bundles were busy for half an hour before, and this time lasts for no longer yet."""
    before = ended(leapt(LeapRecord(), 0, 20, 30), 60)
    history = planned(leapt(before, 0, 20, BEGINS), 102)
    assert not continues_answer(history, SETTINGS, 103 * MINUTE_MS)
    assert continues_answer(history, SETTINGS, BEGINS * MINUTE_MS + 2 * 30 * MINUTE_MS)


@pytest.mark.parametrize(
    ("minute", "bundles", "goes_on"),
    [
        pytest.param(110, 20, True, id="the last plan knew of both"),
        pytest.param(113, 20, False, id="the last plan did not know of it"),
        pytest.param(113, 1, True, id="one bundle is no event"),
    ],
)
def test_another_event_is_answered_anew(minute: int, bundles: int, goes_on: bool) -> None:
    leaps = leapt(leapt(LeapRecord(lasted=9.0), 0, 20, BEGINS), 20, bundles, minute)
    assert continues_answer(planned(leaps, 112), SETTINGS, 114 * MINUTE_MS) == goes_on


def test_another_one_that_may_pass_is_not_answered_yet() -> None:
    before = ended(leapt(LeapRecord(), 20, 20, 30), 60)
    leaps = leapt(leapt(before, 0, 20, BEGINS), 20, 20, 113)
    assert continues_answer(planned(leaps, 112), SETTINGS, 114 * MINUTE_MS)


@given(
    lasts=st.integers(3, 63),
    after=st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True),
    moves=st.integers(1, 9),
)
def test_an_event_counts_as_one_plan_at_most(lasts: int, after: list[int], moves: int) -> None:
    """From its begin to a cool-down after its end, whenever plans are made."""
    begun = leapt(LeapRecord(), 0, 20, BEGINS)
    over = ended(begun, BEGINS + lasts)
    history = planned(begun, 0)
    for minute in sorted(BEGINS + each for each in after if each < lasts + COOL_DOWN):
        now_ms = minute * MINUTE_MS
        history = replace(history, leaps=begun if minute < BEGINS + lasts else over)
        answered = float(continues_answer(history, SETTINGS, now_ms))
        unrest = unrest_of(history, now_ms)
        history = note_plan(history, Made(moves, answered), unrest, SETTINGS, now_ms)
        assert history.unrest <= 1.0
