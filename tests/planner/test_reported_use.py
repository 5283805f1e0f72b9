"""What brokers report bounds what is predicted of them, whatever their bundles' counters say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from tests.planner.views import INTERVAL_MS, KEPT, Carried, carrying, later
from trimtab.arrays import BANDWIDTH_IN, Floats
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import Hosted, PlannerHistory
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.reported_use import (
    Reports,
    bound_without_leaps,
    find_missing,
    note_hosted,
    read_reports,
)
from trimtab.load_model.unreported import Unreported
from trimtab.names import identities
from trimtab.planner import shed
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.columns import pack, unpack

NAMES = tuple("abcdefgh")
DAY = 86_400_000 // INTERVAL_MS
BUNDLES: Mapping[str, Sequence[Carried]] = {name: [("t/n", 0.25)] * 2 for name in "abc"}
FEWER = {**BUNDLES, "a": BUNDLES["a"][:1]}
ALL_REPORTED = Unreported(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0))


class Watched:
    """Brokers whose counters err, unless ``strays`` says otherwise. What the first reports is
    given; the others report ``others``."""

    def __init__(self) -> None:
        self.hosted = Hosted()
        self.bundles = dict(BUNDLES)
        self.others = 0.5
        self.strays = 1.0

    def report(self, minute: int, newest: float = 0.5, average: float = 0.5) -> Reports:
        """What the reports of a minute bound."""
        view = later(carrying(self.bundles), minute)
        others = [self.others] * (len(self.bundles) - 1)
        columns = ([each, *others] for each in (newest, average))
        resources, smoothed = (np.tile(100 * np.array(column), (5, 1)) for column in columns)
        brokers = replace(view.brokers, resources=resources, smoothed_resources=smoothed)
        view, keys = replace(view, brokers=brokers), identities(view.bundles.names)
        self.hosted = note_hosted(self.hosted, view, keys, ALL_REPORTED, Settings())
        strays = dict.fromkeys(brokers.names, self.strays)
        history = PlannerHistory(hosted=self.hosted, strays=strays)
        return read_reports(history, brokers, Settings())


def missing(predicted: float, reports: Reports) -> float:
    """Of the first broker, where the others are as predicted."""
    found: float = find_missing(np.array([predicted, 0.5, 0.5]), reports)[0]
    return found


@pytest.mark.parametrize(
    ("predicted", "found"),
    [
        pytest.param(0.2, 0.2, id="too low"),
        pytest.param(0.7, -0.2, id="too high"),
        pytest.param(0.45, 0.0, id="between them"),
        pytest.param(0.36, 0.0, id="not clearly too low"),
        pytest.param(0.54, 0.0, id="not clearly too high"),
    ],
)
def test_a_broker_is_as_busy_as_it_reports_now_or_on_average(
    predicted: float, found: float
) -> None:
    for newest, average in ((0.4, 0.5), (0.5, 0.4)):
        assert missing(predicted, Watched().report(0, newest, average)) == pytest.approx(found)


@pytest.mark.parametrize(("predicted", "found"), [(1.2, 0.0), (0.5, 0.4)])
def test_near_overload_a_broker_may_be_busier_than_it_reports(
    predicted: float, found: float
) -> None:
    assert missing(predicted, Watched().report(0, 0.9, 0.9)) == pytest.approx(found)


def test_what_is_missing_on_all_brokers_moves_nothing() -> None:
    found = find_missing(np.array([0.9, 0.7, 0.7]), Watched().report(0))
    assert found.tolist() == pytest.approx([-0.2, 0.0, 0.0])
    found = find_missing(np.array([1.2, 0.3, 0.3]), Watched().report(0, 0.9, 0.9))
    assert found.tolist() == pytest.approx([0.0, 0.0, 0.0])


def test_nothing_is_missing_where_no_broker_reports() -> None:
    none = np.zeros(0)
    assert find_missing(none, Reports(none, none, none, none > 0, 0.05)).size == 0


def test_reports_are_not_believed_until_they_tell_of_the_bundles() -> None:
    watched = Watched()
    watched.report(0)
    watched.bundles = dict(FEWER)
    late = [missing(0.2, watched.report(minute)) for minute in range(1, 7)]
    assert late == pytest.approx([0.0] * 5 + [0.3])


@pytest.mark.parametrize(
    ("stirs", "strays", "found"),
    [
        pytest.param(0.0, 0.01, 0.2, id="usage stays as it is, and traffic does not"),
        pytest.param(0.05, 0.03, 0.0, id="usage follows traffic"),
        pytest.param(0.05, 0.06, 0.2, id="usage changes, but not as traffic does"),
        pytest.param(0.12, 1.0, 0.0, id="nor does it say much that is reported"),
    ],
)
def test_reports_are_believed_where_counters_err(stirs: float, strays: float, found: float) -> None:
    watched = Watched()
    watched.strays = strays
    for minute in range(60):
        watched.others = 0.5 + stirs * (minute % 2)
        watched.report(minute, watched.others, watched.others)
    watched.others = 0.5
    assert missing(0.3, watched.report(60)) == pytest.approx(found)


def test_the_least_usage_is_that_with_the_same_bundles() -> None:
    watched = Watched()
    least = [watched.report(minute, usage).least[0] for minute, usage in enumerate((0.5, 0.4, 0.6))]
    assert least == pytest.approx([0.5, 0.4, 0.4], rel=0.01)
    watched.bundles = dict(FEWER)
    least = [watched.report(minute, 0.3).least[0] for minute in range(3, 10)]
    assert least == pytest.approx([0.0] * 5 + [0.3, 0.3], rel=0.01)
    watched.bundles = dict(BUNDLES)
    least = [watched.report(minute, 0.6).least[0] for minute in range(10, 16)]
    assert least == pytest.approx([0.0] * 5 + [0.5], rel=0.01)


def test_the_least_usage_doubles_in_a_day() -> None:
    watched = Watched()
    watched.report(0, 0.2)
    assert watched.report(DAY, 0.9, 0.9).least[0] == pytest.approx(0.4)
    assert watched.report(300 * DAY, 0.9, 0.9).least[0] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("predicted", "full", "least", "counts"),
    [
        pytest.param(0.2, 0.5, 0.3, 0.3, id="it never was so idle"),
        pytest.param(0.2, 0.28, 0.3, 0.28, id="it is not as busy now, leaps and all"),
        pytest.param(0.26, 0.5, 0.3, 0.26, id="it hardly was less idle"),
        pytest.param(0.6, 0.7, 0.3, 0.6, id="it is busy without them"),
        pytest.param(0.2, 0.5, 0.0, 0.2, id="nothing is known of it"),
    ],
)
def test_a_leap_that_brought_a_broker_no_higher_is_none(
    predicted: float, full: float, least: float, counts: float
) -> None:
    usage, leapt = np.array([predicted, 0.5, 0.5]), np.array([full, 0.5, 0.5])
    reports = Watched().report(0)._replace(least=np.array([least, 0.0, 0.0]))
    assert bound_without_leaps(usage, leapt, reports).tolist() == [counts, 0.5, 0.5]
    believed = reports._replace(binding=np.zeros(3, np.bool_))
    assert bound_without_leaps(usage, leapt, believed).tolist() == usage.tolist()


def test_a_history_without_usage_has_no_reports() -> None:
    watched = Watched()
    watched.report(0)
    assert not PlannerHistory(hosted=watched.hosted).without_usage().hosted.names


def test_what_is_known_of_brokers_stays_with_them_as_others_come_and_go() -> None:
    watched = Watched()
    watched.report(0, 0.3, 0.3)
    few = watched.hosted
    watched.bundles = {**BUNDLES, "d": [("t/n", 0.25)]}
    watched.report(6)
    more = watched.hosted
    assert more.names == ("a", "b", "c", "d")
    assert more.checksum[:3].tolist() == few.checksum.tolist()
    assert more.changed_ms.tolist() == [0] * 4
    assert more.least.tolist() == pytest.approx([0.3, 0.5, 0.5, 0.5], rel=0.01)
    watched.bundles = dict(BUNDLES)
    watched.report(12)
    assert watched.hosted.names == few.names
    assert watched.hosted.changed_ms.tolist() == [0] * 3


def test_state_of_a_broker_at_a_time_is_read_as_if_nothing_were_known() -> None:
    stored = msgspec.msgpack.decode(pack(PlannerHistory()))
    stored["hosted"] = {"a": [7, 1_000, 0.3, 0.3, 0, 0.01]}
    assert unpack(msgspec.msgpack.encode(stored), PlannerHistory) == PlannerHistory()


def misread(start: View, minute: int, left: float, smoothed: Floats) -> View:
    """The view of a minute in which every seventh bundle's counters read ``left`` of what it
    carries; ``smoothed``: (4, n) the brokers' average traffic of the minute before."""
    view, n = later(start, minute), len(start.brokers.names)
    wrong = (np.arange(len(view.bundles.names)) + minute) % 7 == 0
    stats = np.where(wrong, left, 1.0) * start.bundles.stats
    traffic = np.array([np.bincount(view.bundles.owner, each, n) for each in stats])
    average = traffic + KEPT * (smoothed - traffic)
    brokers = replace(view.brokers, traffic=traffic, smoothed_traffic=average)
    return replace(view, brokers=brokers, bundles=replace(view.bundles, reported=lambda: stats))


class Minute(NamedTuple):
    """How many moves are planned in it, by what was known before, and what is predicted."""

    moves: int
    view: View
    past: PlannerHistory
    fleet: Fleet


def watch(start: View, left: float = 0.0, minutes: int = 60) -> Iterator[Minute]:
    """A fleet whose brokers are as busy as ever, minute by minute."""
    history, view = PlannerHistory(), start
    for minute in range(minutes):
        view = misread(start, minute, left, view.brokers.smoothed_traffic)
        past, (fleet, _) = history, observe_fleet(view, history, Settings())
        wishes, history = shed(view, history, Settings())
        yield Minute(len(wishes), view, past, fleet)


def even(*, competing: bool = False) -> View:
    """Eight brokers at 51 %; their links may carry 20 to 40 % beside that, of other traffic."""
    start = carrying({name: [(f"t/{name}", 0.17)] * 3 for name in NAMES})
    resources = start.brokers.resources.copy()
    if competing:
        resources[BANDWIDTH_IN] = [20, 40, 30, 20, 40, 30, 20, 40]
    limits = np.full_like(resources, 100.0)
    brokers = replace(
        start.brokers, resources=resources, smoothed_resources=resources, limits=limits
    )
    return replace(start, brokers=brokers)


@pytest.mark.parametrize("left", [0.0, 0.3])
def test_an_even_fleet_whose_counters_err_is_left_alone(left: float) -> None:
    seen = list(watch(even(), left))
    assert sum(minute.moves for minute in seen) == 0
    assert any(minute.fleet.as_reported for minute in seen)
    assert any(minute.fleet.passing for minute in seen)


def test_what_is_on_its_way_is_no_longer_on_its_broker() -> None:
    for _, view, past, fleet in watch(even(), minutes=19):
        intended = view.intended.copy()
        intended[1] = 1
        moved, _ = observe_fleet(replace(view, intended=intended), past, Settings())
        assert moved.usage[0] < fleet.usage[0] - 0.05


def test_where_several_resources_compete_each_is_followed_instead() -> None:
    for *_, fleet in watch(even(competing=True), minutes=20):
        assert fleet.takes is not None
        assert fleet.as_reported == 0
