"""A broker that is silent for a day is forgotten, by data that a replay has too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sources.arrivals import Stored, Taken, take_reports
from sources.records import Report
from tests.support.clusters_by_rows import cluster, held, snapshot_row
from tests.support.reports import EVERY_REPORT, bundle
from trimtab.intake.expiry import FORGET_MS, is_forgotten, look_ms
from trimtab.intake.snapshot import Snapshot
from trimtab.wire.columns import pack, unpack
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

ONE = bundle(0)


def taken(sequence: int, appended_ms: int, stored: Stored, now_ms: int | None = None) -> Taken:
    """A report of one bundle, read at once or at ``now_ms``."""
    data = LocalBrokerData(last_stats={ONE: BundleStats(msg_rate_in=10.0 * sequence)})
    value = encode(data)
    row = Report(value, len(value), None, b"1", b"%d" % sequence, 0, 0, appended_ms)
    now_ms = appended_ms if now_ms is None else now_ms
    return take_reports(("c", "b:1"), [row], stored, EVERY_REPORT, now_ms)


def after(*reports: tuple[int, int]) -> Stored:
    """What is stored after reports of these sequences, appended then."""
    stored = Stored({}, {})
    for sequence, appended_ms in reports:
        taken(sequence, appended_ms, stored)
    return stored


def rate(stored: Stored) -> list[float]:
    rates: list[float] = unpack(stored.snapshots["c/b:1"], Snapshot).short[0].tolist()
    return rates


def test_averages_go_on_after_less_than_a_day() -> None:
    assert rate(after((1, 5), (2, 4 + FORGET_MS))) == [15.0]


def test_averages_and_the_order_of_reports_start_again_after_a_day() -> None:
    late = 5 + FORGET_MS
    assert taken(7, late, after((7, 5))) == taken(7, late, Stored({}, {}))
    assert rate(after((7, 5), (2, late))) == [20.0]


def test_a_broker_is_forgotten_by_its_newest_report_and_the_batch_alone() -> None:
    """Not by the report that comes: state that a timer deleted would not know of it."""
    stored = after((1, 5))
    taken(2, 6, stored, now_ms=5 + FORGET_MS)
    assert rate(stored) == [20.0]


@given(st.integers(0, 10**14))
def test_when_it_is_looked_for_it_is_forgotten(appended_ms: int) -> None:
    look = look_ms(appended_ms)
    for packed in after((1, appended_ms)):
        assert is_forgotten(packed["c/b:1"], look)
    assert look - appended_ms <= 2 * FORGET_MS


def test_a_look_is_asked_for_once_a_day() -> None:
    first = taken(1, 5, Stored({}, {}))
    assert first.look_ms == look_ms(5)
    assert taken(2, FORGET_MS - 1, after((1, 5))).look_ms == 0
    next_day = taken(2, FORGET_MS + 1, after((1, 5)))
    assert next_day.look_ms == look_ms(FORGET_MS + 1) > first.look_ms


def test_what_was_set_aside_is_dropped_with_it() -> None:
    """Looked for every hundred rounds: the first is one of them."""
    it = cluster({"round.silence": 10.0, "round.forget": 20.0, "round.interval": 0.0})
    it.take([snapshot_row("a:1", {ONE: 1.0}, at_ms=1000)], 1000)
    it.take([snapshot_row("b:1", {}, at_ms=90_000)], 90_000)
    assert set(it.aside) == {"a:1"}
    heard_ms = unpack(it.aside["a:1"], Snapshot).appended_ms
    for _ in range(98):
        held(it, heard_ms + FORGET_MS)
    assert set(it.aside) == {"a:1"}
    held(it, heard_ms + FORGET_MS)
    assert dict(it.aside) == {}
    assert pack(it.memory)
