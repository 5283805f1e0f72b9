"""What leaps make of a fleet: an event, a burst that waits, or one whose like is known to pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.planner.views import Carried, carrying, later
from tests.support.clusters import NOW_MS
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.estimating.passed_leaps import PassedLeaps
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import View

MINUTE_MS = 60_000
CALM = 40
"""Minutes in which nothing leaps."""
PASSING = LeapRecord(returned=(0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0), at_ms=NOW_MS)
"""Leaps that were back within two minutes: the next ones wait for four."""


def fleet(times: Mapping[int, float] | None = None) -> View:
    """Four brokers of ten bundles, of a tenant each; the first one is a little colder. Some bundles
    have so many ``times`` their load."""
    size = [0.02] * 10 + [0.03] * 30
    for bundle, factor in (times or {}).items():
        size[bundle] *= factor
    tenants = ["t/a"] * 10 + ["t/b"] * 10 + ["t/c"] * 10 + ["t/d"] * 10
    bundles: Sequence[Carried] = [*zip(tenants, size, strict=True)]
    return carrying({name: bundles[10 * at : 10 * at + 10] for at, name in enumerate("abcd")})


@cache
def calm() -> PlannerHistory:
    history = PlannerHistory()
    for minute in range(CALM):
        _, history = observe_fleet(later(fleet(), minute), history, Settings())
    return history


def after(times: Mapping[int, float], leaps: LeapRecord, minutes: int) -> Fleet:
    """The fleet so many minutes after bundles leapt, where ``leaps`` are known of before."""
    history, leapt = replace(calm(), leaps=leaps), fleet(times)
    for minute in range(minutes):
        seen, history = observe_fleet(later(leapt, CALM + minute), history, Settings())
    return seen


FIVE = dict.fromkeys((0, 10, 20, 30, 35), 3.0)


def passed() -> LeapRecord:
    """The same five leapt before, and were back after eight minutes."""
    keys = np.sort(identities(fleet().bundles.names)[[*FIVE]])
    at_ms = np.full(len(keys), later(fleet(), 5).now_ms)
    return LeapRecord(passed=PassedLeaps(keys, np.full(len(keys), 480.0), at_ms))


@pytest.mark.parametrize(
    ("leaps", "struck", "passing"),
    [
        pytest.param(LeapRecord(), 5, 0, id="what leaps together is believed at once"),
        pytest.param(passed(), 0, 5, id="but not if it came back the last time"),
        pytest.param(PASSING, 0, 0, id="nor is it urgent where leaps pass"),
    ],
)
def test_five_that_leap_together_are_an_event_unless_leaps_pass(
    leaps: LeapRecord, struck: int, passing: int
) -> None:
    seen = after(FIVE, leaps, 6)
    assert (seen.struck, seen.passing) == (struck, passing)


def test_the_noise_of_what_leapt_counts_where_leaps_pass() -> None:
    """Else its new level is no chance."""
    sure, unsure = (after(FIVE, leaps, 6) for leaps in (LeapRecord(), PASSING))
    assert (sure.variance < 0.8 * unsure.variance).all()


@pytest.mark.parametrize(
    ("leaps", "usage"),
    [
        pytest.param(LeapRecord(), 0.3, id="it may last: its broker has no room"),
        pytest.param(PASSING, 0.2, id="it will pass: it counts as before"),
    ],
)
def test_a_burst_makes_room_once_leaps_are_known_to_pass(leaps: LeapRecord, usage: float) -> None:
    seen = after({0: 8.0}, leaps, 2)
    assert seen.passing == 1
    assert seen.usage[0] == pytest.approx(usage, abs=0.02)


@pytest.mark.parametrize(("leaps", "resting"), [(LeapRecord(), 1), (PASSING, 0)])
def test_a_tenant_that_fell_rests_unless_it_was_in_a_burst(leaps: LeapRecord, resting: int) -> None:
    seen = after(dict.fromkeys(range(10, 20), 0.4), leaps, 12)
    assert seen.resting == resting


@pytest.mark.parametrize(
    ("factor", "limited"),
    [
        pytest.param(8.0, False, id="its broker stays below overload"),
        pytest.param(60.0, True, id="it must be relieved, to the limit of overload"),
    ],
)
def test_a_burst_that_will_pass_is_answered_near_overload(factor: float, limited: bool) -> None:
    seen = after({0: factor}, PASSING, 2)
    assert seen.limit == (seen.near_overload if limited else 0.0)


@pytest.mark.parametrize(
    ("factor", "usage"),
    [
        pytest.param(8.0, 0.2, id="its broker is half empty with the burst"),
        pytest.param(31.0, 0.2675, id="it may take 0.0075 until it is near overload with it"),
    ],
)
def test_a_broker_is_filled_beside_its_burst_no_further_than_near_overload(
    factor: float, usage: float
) -> None:
    """Without the burst it lacks 0.075 of the mean."""
    seen = after({0: factor}, PASSING, 2)
    assert seen.passing == 1
    assert seen.usage[0] == pytest.approx(usage)
