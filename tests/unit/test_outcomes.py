"""Every intent of an operator has one outcome under its id."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from tests.support.clusters_by_rows import change_row, rounds_in, said
from tests.support.fleets import EIGHTHS, fleet, two_each
from tests.support.outcomes import after, told
from trimtab.cluster.outcomes import REMEMBERED
from trimtab.ownership import Event, State
from trimtab.wire.intent import IntentKind
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.rows import Row, Tag

ONE, OTHER = EIGHTHS[0], EIGHTHS[2]
"""Bundles of a:1 and of b:1."""


def unload(name: str = "1", bundle: str = ONE, to: str = "") -> Row:
    return said(IntentKind.UNLOAD, id=name, bundle=bundle, broker=to)


def moves(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    found = (move for record in rounds_in(rows) for move in record.moves)
    return [(move.bundle, move.destination, move.reason) for move in found]


@pytest.mark.parametrize("kind", [IntentKind.PAUSE, IntentKind.RESUME])
def test_what_takes_effect_at_once_is_done(kind: IntentKind) -> None:
    assert after(two_each(), 2000, said(kind, id="1")) == [("1", "done", "")]


def test_what_breaks_a_rule_is_refused_with_it() -> None:
    it = two_each()
    rows, _ = it.take([said(IntentKind.SETTINGS, id="1", settings={"round.interval": -1})], 2000)
    assert told(rows) == [("1", "refused", "invalid-setting")]
    [outcome] = [r.payload for r in rows if r.tag == Tag.OUTCOME]
    assert "round.interval" in msgspec.json.decode(outcome, type=IntentOutcome).problems[0]


def test_what_the_watcher_says_has_no_outcome_and_may_come_again() -> None:
    it = two_each()
    lost = said(IntentKind.BROKER_LOST, id="lease/a:1", broker="a:1")
    joined = said(IntentKind.BROKER_JOINED, id="lease/a:1", broker="a:1")
    assert after(it, 2000, lost) == after(it, 2100, joined) == after(it, 2200, lost) == []
    assert set(it.memory.liveness.gone) == {"a:1"}


def test_an_unload_is_accepted_decided_in_the_same_batch_and_done_when_it_has_landed() -> None:
    it = two_each()
    rows, _ = it.take([unload(to="d:1")], 2000)
    assert moves(rows) == [(ONE, "d:1", "asked")]
    assert told(rows) == [("1", "accepted", "")]
    assert after(it, 2100, change_row(ONE, "a:1", 2, State.RELEASING)) == []
    assert after(it, 2200, change_row(ONE, "d:1", 3, State.ASSIGNING)) == []
    assert after(it, 2300, change_row(ONE, "d:1", 4)) == [("1", "done", "")]
    assert it.memory.pending == {}


def test_a_round_refuses_by_its_rule() -> None:
    """Its namespace's bundle is owned by a broker that does not report."""
    it = two_each()
    it.take([change_row(OTHER, "z:1", 7)], 1500)
    assert after(it, 2000, unload("1", OTHER)) == [
        ("1", "accepted", ""),
        ("1", "refused", "owner-lost"),
    ]


def test_a_request_that_comes_again_is_the_same_request() -> None:
    it = two_each()
    it.take([unload()], 2000)
    it.receive([change_row(ONE, "d:1", 4)], 2300)
    rows, _ = it.take([unload()], 2400)
    assert (moves(rows), told(rows)) == ([], [("1", "done", "")])
    rows, _ = it.take([unload()], 2500)
    assert (moves(rows), told(rows)) == ([], [])
    assert [row for row in rows if row.tag == Tag.DEAD_LETTER] == []


def test_a_request_that_comes_again_for_another_reason_is_the_same_request() -> None:
    it = two_each()
    it.take([said(IntentKind.PAUSE, id="1", by="ann", reason="a disk fails")], 2000)
    rows, _ = it.take([said(IntentKind.PAUSE, id="1", by="bob", reason="maintenance")], 2100)
    assert (told(rows), [row for row in rows if row.tag == Tag.DEAD_LETTER]) == ([], [])


@pytest.mark.parametrize(("length", "state"), [(1000, "done"), (1001, "refused")])
def test_a_reason_has_a_bounded_length(length: int, state: str) -> None:
    intent = said(IntentKind.PAUSE, id="1", reason="r" * length)
    rule = "" if state == "done" else "invalid-reason"
    assert after(two_each(), 2000, intent) == [("1", state, rule)]


def test_an_id_is_not_used_for_two_requests_and_the_first_ones_outcome_stands() -> None:
    it = two_each()
    it.take([unload()], 2000)
    rows, _ = it.take([unload(bundle=OTHER)], 2100)
    assert told(rows) == []
    letters = [row.payload for row in rows if row.tag == Tag.DEAD_LETTER]
    assert [b"id-in-use" in letter for letter in letters] == [True]
    assert moves(rows) == []


@pytest.mark.parametrize("name", ["", "i" * 201])
def test_without_a_usable_id_nothing_is_done_and_no_outcome_told(name: str) -> None:
    it = two_each()
    rows, _ = it.take([said(IntentKind.PAUSE, id=name)], 2000)
    assert (told(rows), it.memory.paused, it.memory.intents) == ([], False, {})
    assert [b"invalid-id" in r.payload for r in rows if r.tag == Tag.DEAD_LETTER] == [True]


def test_what_no_round_decides_in_time_expires_and_is_dropped() -> None:
    it = two_each()
    assert after(it, 2000, said(IntentKind.PAUSE), unload())[1:] == [("1", "accepted", "")]
    assert it.memory.round.asked_moves == {ONE: ""}
    rows = [it.hold_round(it.memory.pending["1"].until_ms)]
    [outcome] = it.outcomes
    assert (outcome.state, "paused" in outcome.problems[0]) == ("expired", True)
    assert it.memory.round.asked_moves == {}
    assert moves(rows) == []


def test_a_split_that_no_round_decides_in_time_is_dropped() -> None:
    it = two_each()
    after(it, 2000, said(IntentKind.PAUSE), said(IntentKind.SPLIT, id="s", bundle=ONE))
    assert {*it.memory.round.asked} == {ONE}
    it.hold_round(it.memory.pending["s"].until_ms)
    assert [each.state for each in it.outcomes] == ["expired"]
    assert it.memory.round.asked == {}


def test_what_does_not_land_in_time_expires() -> None:
    it = two_each()
    it.take([unload()], 2000)
    it.hold_round(it.memory.pending["1"].until_ms - 1)
    assert it.outcomes == []
    it.hold_round(it.memory.pending["1"].until_ms)
    [outcome] = it.outcomes
    assert (outcome.state, outcome.problems) == (
        "expired",
        ("it was begun, and not finished in time",),
    )


def test_what_others_changed_as_asked_is_not_done_once_more_by_the_next_round() -> None:
    it = two_each()
    after(it, 2000, said(IntentKind.PAUSE), unload(to="d:1"))
    assert after(it, 2100, change_row(ONE, "b:1", 2)) == [("1", "done", "")]
    rows, _ = it.take([said(IntentKind.RESUME)], 2200)
    assert (moves([*rows, it.hold_round(8000)]), it.memory.round.asked_moves) == ([], {})


def test_a_split_still_waits_for_its_round_after_another_broker_took_the_bundle() -> None:
    it = two_each()
    after(it, 2000, said(IntentKind.PAUSE), said(IntentKind.SPLIT, id="s", bundle=ONE))
    assert after(it, 2100, change_row(ONE, "b:1", 2)) == []
    assert {*it.memory.round.asked} == {ONE}


def test_a_namespace_is_unloaded_whole_and_done_with_its_last_bundle() -> None:
    it = two_each()
    rows, _ = it.take([said(IntentKind.UNLOAD, id="n", name="t/ns")], 2000)
    moved = moves(rows)
    assert sorted(bundle for bundle, _, _ in moved) == sorted(EIGHTHS)
    *first, last = moved
    landed = [change_row(bundle, to, 4) for bundle, to, _ in first]
    assert after(it, 2100, *landed) == []
    assert after(it, 2200, change_row(last[0], last[1], 4)) == [("n", "done", "")]


def test_what_a_round_refuses_of_a_namespace_is_told_with_the_rest() -> None:
    """A bundle's owner is one that does not report."""
    it = two_each()
    it.take([change_row(OTHER, "z:1", 7)], 1500)
    rows, _ = it.take([said(IntentKind.UNLOAD, id="n", name="t/ns", broker="d:1")], 2000)
    it.receive([change_row(bundle, "d:1", 9) for bundle, _, _ in moves(rows)], 2100)
    [outcome] = it.outcomes
    assert (outcome.state, outcome.rule) == ("done", "owner-lost")
    assert outcome.problems == (f"{OTHER}: owner-lost",)


def test_a_namespace_that_is_where_it_should_be_is_done_at_once() -> None:
    it = two_each()
    it.receive([change_row(bundle, "d:1", 2) for bundle in EIGHTHS], 1500)
    assert after(it, 2000, said(IntentKind.UNLOAD, id="n", name="t/ns", broker="d:1")) == [
        ("n", "done", "")
    ]


def test_a_split_is_done_when_its_children_stand() -> None:
    it = two_each()
    assert after(it, 2000, said(IntentKind.SPLIT, id="s", bundle=ONE)) == [("s", "accepted", "")]
    it.hold_round(2100)
    splitting = change_row(ONE, "a:1", 2, State.SPLITTING, Event.SPLIT)
    assert after(it, 2200, splitting) == []
    ended = change_row(ONE, None, 3, State.DELETED, Event.RETIRE)
    assert after(it, 2300, ended) == [("s", "done", "")]


def test_a_split_that_its_owner_declines_is_refused() -> None:
    it = two_each()
    it.take([said(IntentKind.SPLIT, id="s", bundle=ONE)], 2000)
    it.hold_round(2100)
    it.take([change_row(ONE, "a:1", 2, State.SPLITTING, Event.SPLIT)], 2200)
    declined = change_row(ONE, "a:1", 3, event=Event.DECLINE)
    assert after(it, 2300, declined) == [("s", "refused", "undividable")]


def test_a_drain_is_done_when_its_broker_owns_nothing() -> None:
    it = two_each()
    assert after(it, 2000, said(IntentKind.DRAIN, id="d", broker="a:1")) == [("d", "accepted", "")]
    it.take([change_row(EIGHTHS[0], "b:1", 4)], 2100)
    it.hold_round(10**7)
    assert it.outcomes == []
    it.receive([change_row(EIGHTHS[1], "b:1", 4)], 10**7 + 1)
    it.hold_round(10**7 + 2)
    assert [(each.id, each.state) for each in it.outcomes] == [("d", "done")]


def test_while_the_job_observes_a_drain_is_not_done() -> None:
    """It is shown no records, which do not say that the broker owns nothing."""
    it = fleet({ONE: "a:1", OTHER: "b:1"}, round__observe_only=True)
    assert after(it, 2000, said(IntentKind.DRAIN, id="d", broker="a:1")) == [("d", "accepted", "")]
    it.hold_round(3000)
    assert it.outcomes == []


def test_a_bundle_of_a_drained_broker_is_unloaded_where_the_operator_says() -> None:
    it = two_each()
    drain = said(IntentKind.DRAIN, broker="a:1")
    rows, _ = it.take([drain, unload(to="d:1")], 2000)
    assert (ONE, "d:1", "asked") in moves(rows)
    assert it.memory.pending["1"].awaited[ONE].decided
    assert [record.refusals for record in rounds_in(rows)] == [()]


def test_a_bundle_that_is_tied_to_its_broker_is_refused_by_the_round() -> None:
    monitoring = "pulsar/a:1/0x00000000_0xffffffff"
    it = fleet({monitoring: "a:1", OTHER: "b:1"})
    assert after(it, 2000, unload(bundle=monitoring))[-1] == ("1", "refused", "not-movable")


def test_a_drain_that_is_called_off_expires() -> None:
    it = two_each()
    it.take([said(IntentKind.DRAIN, id="d", broker="a:1")], 2000)
    undrain = said(IntentKind.UNDRAIN, id="u", broker="a:1")
    assert after(it, 2100, undrain) == [("d", "expired", ""), ("u", "done", "")]


@pytest.mark.parametrize(
    ("intent", "rule"),
    [
        pytest.param(unload(bundle="t/ns/0x00000000_0x00000001"), "unknown-bundle", id="bundle"),
        pytest.param(unload(to="z:1"), "unknown-broker", id="broker"),
        pytest.param(
            said(IntentKind.UNLOAD, id="1", name="t/n"), "unknown-namespace", id="namespace"
        ),
        pytest.param(said(IntentKind.UNLOAD, id="1"), "no-subject", id="nothing"),
        pytest.param(
            said(IntentKind.UNLOAD, id="1", name="t/ns", bundle=ONE), "no-subject", id="both"
        ),
        pytest.param(unload(to="a:1"), "invalid-move", id="it is there"),
    ],
)
def test_an_unload_that_cannot_be_is_refused_before_a_round(intent: Row, rule: str) -> None:
    it = two_each()
    it.hold_round(1500)
    assert after(it, 2000, intent) == [("1", "refused", rule)]


def test_another_destination_for_a_bundle_that_waits_for_the_round_conflicts() -> None:
    it = two_each()
    it.hold_round(1500)
    other = said(IntentKind.UNLOAD, id="2", bundle=ONE, broker="d:1")
    assert ("2", "refused", "conflict") in after(it, 2000, unload(to="c:1"), other)


def test_an_unload_to_a_broker_that_drains_is_refused() -> None:
    it = two_each()
    it.take([said(IntentKind.DRAIN, broker="d:1")], 1900)
    assert after(it, 2000, unload(to="d:1")) == [("1", "refused", "invalid-move")]


def test_while_the_job_observes_nothing_is_unloaded() -> None:
    it = fleet({ONE: "a:1", OTHER: "b:1"}, round__observe_only=True)
    assert after(it, 2000, unload()) == [("1", "refused", "observing")]


def test_the_newest_ids_are_remembered() -> None:
    it = two_each()
    for number in range(REMEMBERED + 5):
        it.receive([said(IntentKind.PAUSE, id=str(number))], 2000)
    assert (len(it.memory.intents), "4" in it.memory.intents) == (REMEMBERED, False)
