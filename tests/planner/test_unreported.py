"""What a report lacks is still on its broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.planner.views import carrying, later
from trimtab.arrays import BANDWIDTH_IN
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.in_transit import send_off
from trimtab.load_model.observation import observe_fleet
from trimtab.names import identities
from trimtab.planner import shed
from trimtab.settings import Settings
from trimtab.view import View

KNOWN = 20
"""Minutes for which all is reported."""
LOADS = (0.1, 0.15, 0.25)
"""Of the bundles of each of four brokers."""


def even(names: str = "abcd", *, competing: bool = False) -> View:
    """Brokers at 50 %; their links may carry 10 to 40 % beside that, of other traffic."""
    start = carrying({name: [(f"t/{name}", load) for load in LOADS] for name in names})
    resources = start.brokers.resources.copy()
    if competing:
        resources[BANDWIDTH_IN] = [10, 40, 25, 30]
    limits = np.full_like(resources, 100.0)
    brokers = replace(
        start.brokers, resources=resources, smoothed_resources=resources, limits=limits
    )
    return replace(start, brokers=brokers)


def without(view: View, absent: Sequence[int]) -> View:
    """The view without the bundles of some rows; brokers report the same."""
    there = np.ones(len(view.bundles.owner), np.bool_)
    there[[*absent]] = False
    return replace(view, bundles=view.bundles.part(there), intended=view.intended[there])


@cache
def known(*, competing: bool = False) -> PlannerHistory:
    history = PlannerHistory()
    for minute in range(KNOWN):
        _, history = observe_fleet(later(even(competing=competing), minute), history, Settings())
    return history


def after(absent: Sequence[int], minutes: int, history: PlannerHistory | None = None) -> Fleet:
    """The fleet in the last of so many minutes in which reports lack those bundles."""
    history = history or known()
    for minute in range(KNOWN, KNOWN + minutes):
        fleet, history = observe_fleet(later(without(even(), absent), minute), history, Settings())
    return fleet


def predicted(fleet: Fleet) -> list[float]:
    return [round(each, 2) for each in fleet.usage.tolist()]


@pytest.mark.parametrize("absent", [(0,), (2,), (0, 1, 3, 8)])
def test_a_broker_is_as_busy_without_a_report_of_its_bundles(absent: Sequence[int]) -> None:
    assert predicted(after(absent, 1)) == [0.5] * 4
    assert predicted(after(absent, 9)) == [0.5] * 4


def test_what_is_not_reported_for_ten_minutes_is_gone() -> None:
    assert predicted(after((2,), 12))[0] < 0.4


def test_what_a_plan_sent_elsewhere_is_there() -> None:
    bundle = even().bundles.names[2]
    sent = send_off({}, {bundle: "b"}, later(even(), KNOWN - 1).now_ms)
    found = predicted(after((2,), 1, replace(known(), sent=sent)))
    assert found == [0.25, 0.75, 0.5, 0.5]


def test_what_a_plan_sent_long_ago_is_where_it_was_reported_since() -> None:
    sent = send_off({}, {even().bundles.names[2]: "b"}, later(even(), KNOWN - 15).now_ms)
    assert predicted(after((2,), 1, replace(known(), sent=sent))) == [0.5] * 4


def test_what_a_lost_broker_had_counts_nowhere() -> None:
    fleet, _ = observe_fleet(later(even("abc"), KNOWN), known(), Settings())
    assert predicted(fleet) == [0.5] * 3


def test_it_counts_where_several_resources_compete() -> None:
    history, view = known(competing=True), later(even(competing=True), KNOWN)
    whole, _ = observe_fleet(view, history, Settings())
    partial, _ = observe_fleet(without(view, (2,)), history, Settings())
    assert whole.takes is not None
    assert partial.takes is not None
    assert partial.usage[0] > whole.usage[0] - 0.05


def test_bundles_that_reports_lack_did_not_go() -> None:
    """So what is known of their broker still holds."""
    history = known()
    for minute in range(KNOWN, KNOWN + 20):
        absent = (minute % 12, (minute + 5) % 12)
        _, history = observe_fleet(later(without(even(), absent), minute), history, Settings())
    assert set(history.hosted.changed_ms.tolist()) == {0}


def test_an_even_fleet_whose_reports_lack_half_of_its_bundles_is_left_alone() -> None:
    draws, history, moves = np.random.default_rng(3), PlannerHistory(), 0
    for minute in range(90):
        absent = np.flatnonzero(draws.random(12) < 0.5).tolist() if minute else list[int]()
        view = later(without(even(), absent), minute)
        wishes, history = shed(view, history, Settings())
        moves += len(wishes)
    assert moves == 0


def silenced(view: View, rows: Sequence[int]) -> View:
    """The view in which the counters of some bundles read 0; brokers are as busy as ever."""
    stats = view.bundles.stats.copy()
    stats[:, [*rows]] = 0.0
    return replace(view, bundles=replace(view.bundles, reported=lambda: stats))


def moved(view: View, row: int, broker: int) -> View:
    """The view with a bundle on another broker."""
    owner = view.bundles.owner.copy()
    owner[row] = broker
    return replace(view, bundles=replace(view.bundles, owner=owner), intended=owner)


@pytest.mark.parametrize(("minutes", "usage"), [(2, 0.75), (4, 0.5)])
def test_counters_of_what_has_just_come_read_nothing_for_three_minutes(
    minutes: int, usage: float
) -> None:
    history, view = known(), silenced(moved(even(), 2, 1), [2])
    for minute in range(KNOWN, KNOWN + minutes):
        fleet, history = observe_fleet(later(view, minute), history, Settings())
    assert fleet.usage[1] == pytest.approx(usage, abs=0.03)
    assert not fleet.movable[2]


def test_what_stays_and_reads_nothing_carries_nothing() -> None:
    history, view = known(), silenced(even(), [2])
    for minute in range(KNOWN, KNOWN + 6):
        _, history = observe_fleet(later(view, minute), history, Settings())
    at = np.searchsorted(history.estimates.keys, identities([view.bundles.names[2]]))
    assert history.estimates.level[at[0]] < 0.01


def test_a_broker_that_counts_nothing_has_what_it_had() -> None:
    """It has just started, and is as busy as before."""
    history, view = known(), silenced(even(), [0, 1, 2])
    traffic = view.brokers.traffic.copy()
    traffic[:, 0] = 0.0
    view = replace(view, brokers=replace(view.brokers, traffic=traffic))
    fleet, _ = observe_fleet(later(view, KNOWN), history, Settings())
    assert predicted(fleet) == [0.5] * 4
    assert fleet.size[:3].sum() == pytest.approx(0.25, abs=0.01)


def with_totals(view: View, times: float) -> View:
    """The view in which the first broker reports so many times the traffic of its bundles."""
    columns = {}
    for name in ("traffic", "smoothed_traffic"):
        columns[name] = getattr(view.brokers, name).copy()
        columns[name][:, 0] *= times
    return replace(view, brokers=replace(view.brokers, **columns))


def test_what_a_broker_carries_beyond_its_bundles_is_its_own() -> None:
    """It never names its largest bundle, and counts it in its sums. That is known of its traffic,
    and not only because it is as busy as it reports."""
    history = PlannerHistory()
    for minute in range(KNOWN):
        view = later(without(even(), (2,)), minute)
        fleet, history = observe_fleet(view, history, Settings())
    assert predicted(fleet) == pytest.approx([0.5] * 4, abs=0.03)
    assert not fleet.as_reported


def test_a_broker_whose_sums_lack_what_its_report_lacks_is_no_busier() -> None:
    """In every other report half of its traffic is missing, and so its average is less."""
    history = PlannerHistory()
    for minute in range(3 * KNOWN):
        absent = (2,) if minute % 2 else ()
        view = with_totals(later(without(even(), absent), minute), 0.5 if absent else 1.0)
        smoothed = even().brokers.smoothed_traffic * [0.75, 1.0, 1.0, 1.0]
        view = replace(view, brokers=replace(view.brokers, smoothed_traffic=smoothed))
        fleet, history = observe_fleet(view, history, Settings())
    assert predicted(fleet) == pytest.approx([0.5] * 4, abs=0.03)
    assert not fleet.as_reported
