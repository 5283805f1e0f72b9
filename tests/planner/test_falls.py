"""Tenants whose load fell and may come back: no broker gives or receives because of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.planner.views import carrying, later
from trimtab.load_model.falls import (
    Carried,
    Highs,
    find_falls,
    follow_highs,
    is_growing,
    leave_out_fallen,
)
from trimtab.load_model.history import PlannerHistory
from trimtab.planner import shed
from trimtab.settings import Settings

SETTINGS = Settings()
SLACK, FULL = 0.05, 0.8
MINUTE_MS = 60_000
DAY_MS = 1440 * MINUTE_MS
EVEN, BUSY = ("a", "b", "c", "d"), ("e", "f", "g", "h")
"""Brokers: half of what the former carry is the tenant's whose load changes."""
Load = Callable[[int], float]
"""A minute to what that tenant carries, as a multiple of the usual."""


def carrying_now(*carried: float, error: float = 0.0) -> Carried:
    """Tenants that carry so much, on average and now, and the fleet."""
    now = np.array([*carried, sum(carried)])
    return Carried(now, np.full(len(now), error), now)


def high_after(*carried: float, error: float = 0.0, known_ms: int = DAY_MS) -> float:
    """The high of a tenant that carries so much in each minute, in a fleet that was known for so
    long before."""
    highs = Highs()
    for minute, each in enumerate(carried, start=1):
        now = carrying_now(each, error=error)
        highs = follow_highs(highs, ("t",), now, minute * MINUTE_MS, -known_ms)
    return float(highs.carried[0])


def test_the_first_that_is_known_of_a_tenant_is_its_high() -> None:
    assert high_after(3.0) == 3.0


def test_what_fell_is_half_forgotten_after_a_day() -> None:
    assert high_after(*[3.0] * 5, *[1.0] * 1440) == pytest.approx(2.0, abs=0.01)


def test_a_load_that_grows_for_hours_is_its_own_high() -> None:
    assert high_after(*np.linspace(1.0, 2.0, 480)) == 2.0


def test_a_crowd_hardly_raises_it() -> None:
    assert high_after(1.0, *[5.0] * 40, 1.0) < 1.2


def test_in_a_fleet_that_is_hardly_known_it_is_what_is_carried() -> None:
    assert high_after(1.0, 5.0, known_ms=0) == 5.0


@pytest.mark.parametrize(
    ("minutes", "high"),
    [pytest.param(27, 5.0, id="half an hour"), pytest.param(29, 1.0, id="more")],
)
def test_a_fleet_is_hardly_known_for_half_an_hour(minutes: int, high: float) -> None:
    assert high_after(1.0, 5.0, known_ms=minutes * MINUTE_MS) == pytest.approx(high, abs=0.01)


def test_a_clock_that_went_back_raises_no_high() -> None:
    highs = Highs(("t",), np.array([3.0, 3.0]), at_ms=DAY_MS)
    assert follow_highs(highs, ("t",), carrying_now(1.0), 0, -DAY_MS).carried.tolist() == [3, 3]


def test_what_noise_explains_is_no_high() -> None:
    assert high_after(1.0, error=0.1) == pytest.approx(0.6)
    assert high_after(1.0, error=1.0) == 0.0


def test_an_average_that_lags_behind_makes_no_high() -> None:
    lagging = Carried(np.array([1.2, 1.2]), np.zeros(2), np.array([1.0, 1.0]))
    assert follow_highs(Highs(), ("t",), lagging, 0, 0).carried.tolist() == [1.0, 1.0]


def test_sums_are_those_of_namespaces_and_of_the_fleet() -> None:
    namespace, each = np.array([1, 0, 1], np.int32), np.array([1.0, 2.0, 4.0])
    carried = Carried.summed(namespace, 2, each, each**2, 2 * each)
    assert carried.average.tolist() == [2.0, 5.0, 7.0]
    assert (carried.error**2).tolist() == pytest.approx([4.0, 17.0, 21.0])
    assert carried.newest.tolist() == [4.0, 10.0, 14.0]


@pytest.mark.parametrize(
    ("fleet", "falls"),
    [
        pytest.param(5.0, [3.0, 1.0, 1.0], id="the fleet carries as much less as the tenant"),
        pytest.param(4.0, [2.0, 1.0, 1.0], id="half as much less"),
        pytest.param(3.0, [1.0, 1.0, 1.0], id="as much as ever: others took over"),
        pytest.param(9.0, [3.0, 1.0, 1.0], id="more than all that are left: some are gone"),
    ],
)
def test_what_fell_counts_as_before_as_far_as_the_fleet_fell(
    fleet: float, falls: list[float]
) -> None:
    highs = Highs(("t", "u", "v"), np.array([3.0, 1.0, 0.0, fleet]))
    assert find_falls(highs, carrying_now(1.0, 2.0, 0.0)).tolist() == falls


@pytest.mark.parametrize(
    ("per_hour", "error", "grows"),
    [
        pytest.param(1.3, 0.0, True, id="faster than highs follow"),
        pytest.param(1.1, 0.0, False, id="as a day's wave does"),
        pytest.param(1.3, 0.1, False, id="no more than noise may explain"),
        pytest.param(0.7, 0.0, False, id="it falls"),
    ],
)
def test_a_fleet_grows_that_surely_carries_more_than_at_its_highest(
    per_hour: float, error: float, *, grows: bool
) -> None:
    highs = Highs(("t",), np.ones(2))
    for minute in range(1, 61):
        now = carrying_now(per_hour ** (minute / 60), error=error)
        highs = follow_highs(highs, ("t",), now, minute * MINUTE_MS, -DAY_MS)
    assert is_growing(highs, now) == grows


def test_a_fleet_that_is_only_known_better_does_not_grow() -> None:
    """What it surely carries rises from 0.2 to 0.6 within ten minutes; what it carries does not."""
    highs = Highs(("t",), np.zeros(2))
    for minute, error in enumerate((0.2, 0.1), start=1):
        now = carrying_now(1.0, error=error)
        highs = follow_highs(highs, ("t",), now, 10 * minute * MINUTE_MS, -DAY_MS)
    assert not is_growing(highs, now)


def test_what_tenants_take_from_one_another_is_no_growth_of_the_fleet() -> None:
    highs = follow_highs(Highs(), ("t", "u"), carrying_now(1.0, 1.0), 0, -DAY_MS)
    now = carrying_now(1.5, 0.5)
    highs = follow_highs(highs, ("t", "u"), now, MINUTE_MS, -DAY_MS)
    assert not is_growing(highs, now)


@pytest.mark.parametrize(("high", "fall"), [(1.05, 1.0), (1.2, 1.2)])
def test_a_tenant_that_rests_a_little_did_not_fall(high: float, fall: float) -> None:
    highs = Highs(("t",), np.array([high, high]))
    assert find_falls(highs, carrying_now(1.0)).tolist() == [pytest.approx(fall)]


def test_where_no_broker_is_left_nothing_counts() -> None:
    none = np.zeros(0)
    assert leave_out_fallen(none, none, SLACK, FULL).size == 0


def test_a_fleet_known_for_minutes_has_no_highs_of_its_first_minutes() -> None:
    """A job that was running when it was first seen is none of the usual load."""
    assert high_after(3.0, 3.0, 1.0, known_ms=0) == 1.0
    assert high_after(3.0, 3.0, 1.0) > 2.9


def test_highs_are_kept_as_tenants_come_and_go() -> None:
    highs = Highs(("t", "u"), np.array([3.0, 1.0, 4.0]))
    highs = follow_highs(highs, ("new", "t"), carrying_now(1.0, 1.0), 0, -DAY_MS)
    assert dict(zip(highs.namespaces, highs.carried.tolist(), strict=False)) == {"new": 1, "t": 3}


@pytest.mark.parametrize(
    ("usage", "before", "counts"),
    [
        pytest.param(0.46, 0.6, 0.5, id="cold as its load fell: it makes no room"),
        pytest.param(0.54, 0.6, 0.5, id="hot as others' load fell: it does not give"),
        pytest.param(0.46, 0.4, 0.46, id="cold although it carried even less"),
        pytest.param(0.4, 0.6, 0.45, id="far too cold: as far as the slack"),
    ],
)
def test_the_usage_nearer_to_the_mean_counts(usage: float, before: float, counts: float) -> None:
    now, then = np.array([usage, 1.0 - usage, 0.5]), np.array([before, 0.6, 0.6])
    assert leave_out_fallen(now, then, SLACK, FULL)[0] == pytest.approx(counts)


def test_what_nears_overload_counts_as_it_is() -> None:
    now, before = np.array([0.83, 0.75]), np.array([1.0, 1.0])
    assert leave_out_fallen(now, before, SLACK, FULL).tolist() == pytest.approx([0.83, 0.79])


def test_each_resource_has_a_mean_of_its_own() -> None:
    now, before = np.array([[0.46, 0.54], [0.1, 0.1]]), np.array([[0.6, 0.6], [0.1, 0.1]])
    counted = leave_out_fallen(now, before, SLACK, FULL)
    np.testing.assert_allclose(counted, [[0.5, 0.5], [0.1, 0.1]])


def test_a_wave_of_all_tenants_changes_nothing() -> None:
    now = np.array([0.3, 0.25, 0.2])
    np.testing.assert_allclose(leave_out_fallen(now, 2 * now, SLACK, FULL), now)


def plans(moving: Load, others: Load, minutes: int = 180) -> list[int]:
    """The minutes with plans in a fleet with a tenant, and others on other brokers, that do what
    is said."""
    history, found = PlannerHistory(), []
    for minute in range(minutes):
        tenant = [("t/moving", 0.02 * moving(minute))] * 10
        brokers = {name: tenant + [(f"t/{name}", 0.02)] * 10 for name in EVEN}
        brokers |= {name: [(f"t/{name}", 0.02 * others(minute))] * 20 for name in BUSY}
        wishes, history = shed(later(carrying(brokers), minute), history, SETTINGS)
        found += [minute] if wishes else []
    return found


def since_the_second_hour(change: float) -> Load:
    """Within an hour a load changes by this part."""
    return lambda minute: 1.0 + change * float(np.clip((minute - 60) / 60, 0.0, 1.0))


def test_a_fleet_is_left_as_it_is_where_a_tenant_rests() -> None:
    assert plans(since_the_second_hour(-0.6), since_the_second_hour(0.0)) == []


def test_where_others_take_over_the_fleet_is_balanced() -> None:
    assert plans(since_the_second_hour(-0.4), since_the_second_hour(0.2))


def test_where_a_tenant_grows_the_fleet_is_balanced() -> None:
    assert plans(since_the_second_hour(0.6), since_the_second_hour(0.0))
