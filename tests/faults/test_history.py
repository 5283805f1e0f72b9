"""The checker of invariants finds what is broken, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.history import carried_out_late, dual_owners, gaps, restless
from tests.faults.serving import Clock, Diary, Span, WrittenDown
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.settings import Settings
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Change, Record

WHOLE = "t/n/0x00000000_0xffffffff"
LOW, HIGH = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"


@pytest.mark.parametrize(
    ("spans", "clashes"),
    [
        pytest.param([Span(LOW, "a", 0, 2), Span(LOW, "b", 2, 3)], 0, id="one after the other"),
        pytest.param([Span(LOW, "a", 0, 2), Span(LOW, "b", 1.9, 3)], 1, id="both"),
        pytest.param([Span(LOW, "a", 0, 9), Span(LOW, "b", 1, 2)], 1, id="one within the other"),
        pytest.param([Span(LOW, "a", 0, 9), Span(HIGH, "b", 1, 2)], 0, id="two bundles"),
        pytest.param([Span(WHOLE, "a", 0, 9), Span(HIGH, "b", 8, 12)], 1, id="a half"),
        pytest.param([Span(WHOLE, "a", 0, 9), Span(HIGH, "a", 8, 12)], 0, id="its own half"),
    ],
)
def test_two_that_serve_at_once(spans: list[Span], clashes: int) -> None:
    assert len(dual_owners(spans)) == clashes


def test_gaps_are_parts_of_the_ring_that_nobody_serves() -> None:
    spans = [Span(WHOLE, "a", 0, 5), Span(LOW, "a", 5, 9), Span(HIGH, "b", 7, 8)]
    assert gaps(spans, 1, 10) == [(LOW, 9, 10), (HIGH, 5, 7), (HIGH, 8, 10)]


def test_a_diary_ends_what_a_lapsed_lease_ended() -> None:
    now = [0.0]
    diary = Diary(lambda: now[0])
    diary.leased("a", 10.0)
    diary.begins("a", LOW)
    now[0] = 12.0
    diary.leased("a", 20.0)
    now[0] = 15.0
    diary.ends("a")
    assert diary.spans() == [(LOW, "a", 0.0, 10.0), (LOW, "a", 12.0, 15.0)]


def test_who_is_dead_serves_nothing() -> None:
    now = [0.0]
    diary = Diary(lambda: now[0])
    holdings = WrittenDown(diary, "a", Clock())
    diary.leased("a", 10.0)
    holdings.hold(LOW, Epoch(1, 1))
    now[0] = 2.0
    holdings.die()
    now[0] = 3.0
    holdings.hold(HIGH, Epoch(1, 1))
    holdings.clear()
    assert diary.spans() == [(LOW, "a", 0.0, 2.0)]


def change(counter: int, event: Event, since: int = 0, by: str = "", **record: Any) -> Change:
    return Change(
        cluster="c",
        bundle=LOW,
        event=event,
        record=Record(state=State.OWNED, epoch=Epoch(1, counter), since=since, by=by, **record),
    )


def test_a_command_is_late_if_its_record_was_not_the_last() -> None:
    command = Command(
        id="x", cluster="c", broker="a", kind=CommandKind.OWN, bundle=LOW, epoch=Epoch(1, 4)
    )
    assert carried_out_late([change(5, Event.SERVE, by="x/serve")], [command]) == []
    assert carried_out_late([change(7, Event.SERVE, by="x/serve")], [command])


def test_what_goes_back_within_the_grace_period() -> None:
    settings = Settings.parse({"round.grace_period": 10.0})
    there = change(1, Event.TRANSFER, 1000, owner="a", destination="b")
    back = change(4, Event.TRANSFER, 9000, owner="b", destination="a")
    on = change(4, Event.TRANSFER, 9000, owner="b", destination="c")
    assert restless([], [there, back], settings)
    assert not restless([], [there, on], settings)
