"""A young fleet whose leaps come one by one does not take its levels for usual ones yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import carrying
from trimtab.load_model.estimating.excursions import are_bursts_common, find_hidden_part
from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps
from trimtab.load_model.estimating.passed_leaps import PassedLeaps
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.names import identities
from trimtab.settings import Settings

MINUTE_MS = 60_000
BUNDLES = 780
DAY = 1440


def seen(every: float, times: float = 3.0, lasting: int = 10, until: int = 15) -> LeapRecord:
    """The record of a fleet known since minute 0 in which a bundle bursts every so many minutes."""
    record, number = LeapRecord(), 0
    for minute in range(until + 1):
        over = record.since_ms <= (minute - lasting) * MINUTE_MS
        record = close_leaps(record, np.ones(len(over), np.bool_), over, minute * MINUTE_MS)
        while number * every < minute:
            number += 1
            key, at_ms = np.array([number], np.uint64), np.array([minute * MINUTE_MS])
            levels = np.array([1.0]), np.array([times])
            record = open_leaps(record, key, levels, at_ms)
    return record


def hidden(record: LeapRecord, minute: int) -> float:
    return find_hidden_part(record, BUNDLES, minute * MINUTE_MS, 0)


def common(record: LeapRecord, minute: int, bundles: int = BUNDLES) -> bool:
    return are_bursts_common(record, bundles, minute * MINUTE_MS, 0)


def test_leaps_every_minute_pass_even_if_none_has_had_the_time_to() -> None:
    """If they lasted, each bundle would grow threefold twice a day."""
    assert common(seen(1.0, lasting=DAY), 15)
    assert not common(seen(5.0, lasting=DAY), 15)


def test_of_a_fleet_known_for_days_the_leaps_of_the_last_hour_tell() -> None:
    """Thirty are more than the five that may last of those, by more than chance; ten are not."""
    for every, bursting in ((2.0, True), (6.0, False)):
        record, since_ms = seen(every, lasting=DAY, until=60), -10 * DAY * MINUTE_MS
        assert are_bursts_common(record, BUNDLES, 60 * MINUTE_MS, since_ms) == bursting


def test_a_larger_fleet_has_more_that_last() -> None:
    assert not common(seen(1.0, lasting=DAY), 15, bundles=100 * BUNDLES)


def test_what_leaps_down_or_together_is_no_burst() -> None:
    assert not common(seen(1.0, times=1 / 3, lasting=DAY), 15)
    keys, at_ms = np.arange(40, dtype=np.uint64), np.full(40, 10 * MINUTE_MS)
    together = open_leaps(LeapRecord(), keys, (np.ones(40), np.full(40, 3.0)), at_ms)
    assert not common(together, 15)
    assert hidden(together, 15) == 0


def test_a_level_may_be_a_burst_that_began_before_the_fleet_was_known() -> None:
    """It may be too large by what bursts have beyond the level before them."""
    assert hidden(seen(1.0), 15) == pytest.approx(2 / 3)
    assert hidden(seen(8.0, lasting=DAY), 15) == 0


def test_once_a_fleet_is_known_for_longer_than_its_bursts_last_none_is_hidden() -> None:
    assert hidden(seen(1.0, until=40), 40) > 0
    assert hidden(seen(1.0, until=120), 120) == 0
    # Short bursts are over sooner.
    assert hidden(seen(1.0, lasting=3, until=40), 40) == 0


def test_where_leaps_last_no_level_is_doubted() -> None:
    record = seen(10.0, lasting=DAY, until=120)
    assert not hidden(close_leaps(record, *_all(record), 240 * MINUTE_MS), 240)
    record = seen(1.0, lasting=DAY, until=120)
    record = close_leaps(record, *_all(record), 240 * MINUTE_MS)
    assert record.trusted
    assert not common(record, 240)


def test_a_clock_behind_that_of_the_reports_makes_a_fleet_no_older() -> None:
    record = seen(1.0)
    assert find_hidden_part(record, BUNDLES, 0, MINUTE_MS) == pytest.approx(2 / 3)
    assert are_bursts_common(record, BUNDLES, 0, MINUTE_MS)
    assert not are_bursts_common(LeapRecord(), BUNDLES, 0, MINUTE_MS)


def test_a_young_fleet_whose_bundles_burst_is_not_sure_of_its_hot_brokers() -> None:
    """Its bursts are known to pass, and what looks usual may be one: by the largest bundle of each
    broker at most."""
    loads = {"a": [0.3, 0.1], "b": [0.1] * 3, "c": [0.08] * 8}
    view = carrying({name: [("t/n", load) for load in each] for name, each in loads.items()})
    since_ms = view.now_ms - 15 * MINUTE_MS
    history = PlannerHistory(since_ms=dict.fromkeys(view.brokers.names, since_ms))
    assert not observe_fleet(view, history, Settings())[0].hidden.any()
    keys, level = identities(view.bundles.names)[5:], np.full(8, 0.08 / 1.34)
    leaps, begun_ms = LeapRecord(), since_ms + np.arange(2, 10) * MINUTE_MS
    leaps = open_leaps(leaps, keys, (level / 3, level), begun_ms)
    fleet, _ = observe_fleet(view, replace(history, leaps=leaps), Settings())
    assert fleet.passing == 8
    np.testing.assert_allclose(fleet.hidden, [0.2, 0.2 / 3, 0.0], rtol=1e-3)


def test_a_broker_is_not_hot_for_what_a_bundle_had_before_it_fell() -> None:
    """Leaps of this fleet pass, but the fall may be the end of one that was there from the first:
    with what is gone the broker would be at 70 %."""
    view = carrying({"a": [("t/n", 0.1)] * 3, "b": [("t/n", 0.2)] * 2, "c": [("t/n", 0.1)] * 4})
    known = dict.fromkeys(view.brokers.names, view.now_ms - 15 * MINUTE_MS)
    keys, level, begun_ms = identities(view.bundles.names)[:1], np.full(1, 0.1 / 1.1), view.now_ms
    passed = LeapRecord(returned=(0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0))
    fell = open_leaps(passed, keys, (5 * level, level), np.full(1, begun_ms - 2 * MINUTE_MS))
    history = PlannerHistory(since_ms=known, leaps=fell)
    fleet, _ = observe_fleet(view, history, Settings())
    assert fleet.passing == 1
    assert fleet.usage[0] == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("came_back", [False, True])
def test_a_burst_whose_like_came_back_waits_though_its_broker_stands_out(came_back: bool) -> None:
    view = carrying({name: [("t/n", load)] * 3 for name, load in (("a", 0.2), ("b", 0.1))})
    known = dict.fromkeys(view.brokers.names, view.now_ms - 60 * MINUTE_MS)
    keys, now_ms = identities(view.bundles.names)[:1], np.full(1, view.now_ms)
    passed = PassedLeaps(keys, np.full(1, 480.0), now_ms - 50 * MINUTE_MS)
    leaps = LeapRecord(passed=passed if came_back else PassedLeaps())
    leaps = open_leaps(leaps, keys, (np.full(1, 0.07), np.full(1, 0.22)), now_ms - 2 * MINUTE_MS)
    fleet, _ = observe_fleet(view, PlannerHistory(since_ms=known, leaps=leaps), Settings())
    assert fleet.passing == came_back


def _all(record: LeapRecord) -> tuple[np.ndarray, np.ndarray]:
    """All are still there, and none is back."""
    return np.ones(len(record.keys), np.bool_), np.zeros(len(record.keys), np.bool_)
