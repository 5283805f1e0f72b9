"""Operator ② without Spark: what arrives, what is remembered, what a round tells."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.clusters_by_rows import (
    change_row,
    cluster,
    held,
    intent_row,
    skewed,
    snapshot_row,
)
from tests.support.reports import bundle
from trimtab.ownership import Event, State
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change
from trimtab.wire.rows import DeadLetter, Intake, Row, Tag

QUARTERS = [bundle(i) for i in range(4)]


def test_a_skewed_pair_moves_half_of_the_difference() -> None:
    it = cluster()
    changed, _ = it.receive(skewed(QUARTERS), 0)
    record = held(it, 5000)
    assert changed
    assert [(m.bundle, m.source, m.destination) for m in record.moves] == [
        (name, "a:1", "b:1") for name in QUARTERS[:2]
    ]
    assert record.moves[0].epoch == (1, 1)
    assert (record.at, record.round) == (5000, 1)
    assert record.usage == {"a:1": pytest.approx(0.9), "b:1": pytest.approx(0.1)}


def test_a_move_in_flight_is_not_decided_again() -> None:
    it = cluster({"round.grace_period": 0.0})
    it.receive(skewed(QUARTERS), 0)
    moved = {move.bundle for move in held(it, 5000).moves}
    again = held(it, 5001)
    assert moved
    assert moved.isdisjoint(move.bundle for move in again.moves)
    assert again.obstacles == {"in-flight": len(moved)}


@pytest.mark.parametrize("grace_period", [0.0, 1800.0])
def test_a_move_that_never_happened_is_decided_again_after_its_deadline(
    grace_period: float,
) -> None:
    it = cluster({"round.grace_period": grace_period, "round.move_deadline": 30.0})
    it.receive(skewed(QUARTERS), 0)
    first = {move.bundle for move in held(it, 5000).moves}
    assert first.isdisjoint(move.bundle for move in held(it, 34_999).moves)
    assert first <= {move.bundle for move in held(it, 35_000).moves}


def test_a_later_record_ends_the_flight() -> None:
    it = cluster({"round.grace_period": 0.0})
    it.receive(skewed(QUARTERS), 0)
    held(it, 5000)
    it.receive([change_row(QUARTERS[0], "a:1", counter=1), change_row(QUARTERS[1], "b:1", 4)], 0)
    assert set(it.memory.in_flight) == {QUARTERS[0]}


def test_an_older_record_never_replaces_a_newer_one() -> None:
    it = cluster()
    it.receive([change_row(QUARTERS[0], "new:1", counter=5)], 0)
    it.receive([change_row(QUARTERS[0], "old:1", counter=4)], 0)
    assert it.records("t/ns")[QUARTERS[0]].owner == "new:1"


@pytest.mark.parametrize("backwards", [False, True])
def test_a_bundle_that_ended_long_ago_is_forgotten(backwards: bool) -> None:
    whole, halves = bundle(0, 2), QUARTERS[:2]
    end = change_row(whole, None, 9, State.DELETED)
    change = msgspec.json.decode(end.payload, type=Change)
    forgotten = end._replace(
        payload=msgspec.json.encode(msgspec.structs.replace(change, pruned=True))
    )
    tombstone = end._replace(payload=b"")
    rows = [end, forgotten, tombstone]
    it = cluster()
    it.receive([change_row(half, "a:1", 10) for half in halves], 0)
    _, out = it.receive(rows[::-1] if backwards else rows, 0)
    assert it.records("t/ns").keys() == set(halves)
    assert [row for row in out if row.tag == Tag.DEAD_LETTER] == []
    # It began again before the news of its end's removal came.
    it.receive([change_row(whole, "a:1", 11)], 0)
    it.receive([forgotten], 0)
    assert it.records("t/ns")[whole].epoch.counter == 11


def test_records_with_a_hole_stop_their_namespace_and_are_told() -> None:
    it = cluster()
    it.receive(skewed(QUARTERS[:3]), 0)
    record = held(it, 5000)
    assert record.moves == ()
    assert record.obstacles == {"broken-namespace": 3}
    assert record.problems == ("t/ns: nothing covers 0xc0000000_0xffffffff",)


def test_a_deleted_range_does_not_overlap_its_children() -> None:
    it = cluster()
    it.receive([change_row(bundle(0, 1), None, 9, State.DELETED), *skewed(QUARTERS)], 0)
    assert it.memory.flawed == {}


def test_a_silent_broker_leaves_the_view_by_kafkas_clock() -> None:
    it = cluster({"round.silence": 60.0, "round.forget": 1200.0, "doubt.silent_brokers": 1.0})
    it.receive(skewed(QUARTERS), 0)
    it.receive([snapshot_row("c:1", {}, at_ms=662_000)], 0)
    record = held(it, 1)
    assert set(record.usage) == {"c:1"}
    assert record.skipped == "too-few-brokers"
    it.receive([snapshot_row("c:1", {}, at_ms=1_202_000)], 0)
    held(it, 2)
    assert set(it.snapshots) == {"c:1"}


def test_a_paused_cluster_keeps_reading_and_decides_nothing() -> None:
    it = cluster()
    it.receive(
        [intent_row(Intent(id="1", kind=IntentKind.PAUSE, cluster="c")), *skewed(QUARTERS)], 0
    )
    paused = held(it, 1)
    it.receive([intent_row(Intent(id="2", kind=IntentKind.RESUME, cluster="c"))], 0)
    assert (paused.skipped, paused.moves) == ("paused", ())
    assert held(it, 2).moves


def test_settings_change_by_intent_and_a_wrong_one_changes_nothing() -> None:
    it = cluster()
    wrong: dict[str, str | int | float | bool] = {"round.max_moves": -1, "no.such": 1}
    it.receive(
        [
            intent_row(
                Intent(
                    id="ok", kind=IntentKind.SETTINGS, cluster="c", settings={"round.max_moves": 1}
                )
            ),
            intent_row(Intent(id="bad", kind=IntentKind.SETTINGS, cluster="c", settings=wrong), 1),
            *skewed(QUARTERS),
        ],
        0,
    )
    record = held(it, 1)
    assert len(record.moves) == 1
    assert record.settings_version == 1
    assert len([problem for problem in record.problems if problem.startswith("intent bad")]) == 2
    assert held(it, 2).problems == ()


def test_observing_only_plans_without_records_and_launches_nothing() -> None:
    it = cluster({"round.observe_only": True})
    it.receive([row for row in skewed(QUARTERS) if row.tag == Tag.SNAPSHOT], 0)
    record = held(it, 1)
    assert record.observe_only
    assert len(record.moves) == 2
    assert it.memory.in_flight == {}


def test_a_record_that_does_not_parse_becomes_a_dead_letter() -> None:
    it = cluster()
    poison = [
        Row("c", tag, f"trimtab.{tag}/0/{at}", payload, 0)
        for tag in (Tag.INTENT, Tag.CHANGE)
        for at, payload in enumerate((b" ", b"{", b"[" * 5000, b'{"id":1}', b"\xff"))
    ]
    _, out = it.receive([*poison, snapshot_row("a:1", {})], 0)
    letters = [msgspec.json.decode(row.payload, type=DeadLetter) for row in out[:-1]]
    assert [letter.offset for letter in letters] == [*range(5), *range(5)]
    assert {letter.reason for letter in letters} == {"bad-record"}
    assert set(it.snapshots) == {"a:1"}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param('{"state":"Owned","epoch":[1,1]}', id="owned by no broker"),
        pytest.param('{"state":"Assigning","epoch":[1,1],"owner":""}', id="given to no name"),
        pytest.param('{"state":"Free","epoch":[1,1],"owner":"a:1"}', id="free, and somebody's"),
        pytest.param('{"state":"Deleted","epoch":[1,1],"owner":"a:1"}', id="ended, and somebody's"),
    ],
)
def test_a_change_whose_owner_contradicts_its_state_becomes_a_dead_letter(record: str) -> None:
    it, bundle = cluster(), "t/n/0x00000000_0xffffffff"
    written = f'{{"cluster":"c","bundle":"{bundle}","event":"claim","record":{record}}}'
    row = Row("c", Tag.CHANGE, "trimtab.ownership/0/7", written.encode(), 0)
    _, out = it.receive([row], 0)
    [letter] = [
        msgspec.json.decode(each.payload, type=DeadLetter)
        for each in out
        if each.tag == Tag.DEAD_LETTER
    ]
    assert (letter.reason, letter.offset) == ("bad-record", 7)
    assert bundle not in it.namespaces


def test_a_dead_letter_quotes_little_of_what_was_rejected() -> None:
    it, other = cluster(), "\x00" * 100_000
    strange = msgspec.json.encode(Intent(id="1", kind=IntentKind.PAUSE, cluster=other))
    rows = [Row(of, Tag.INTENT, "trimtab.control/0/1", strange, 0) for of in ("c", "k" * 100_000)]
    _, letters = it.receive(rows, 0)
    assert [len(each.payload) < 20_000 for each in letters[:2]] == [True, True]


def test_the_intake_of_a_batch_is_told() -> None:
    it = cluster()
    rows = [
        snapshot_row("a:1", {}),
        Row("c", Tag.SNAPSHOT, "b:1", b"", 900, accepted=0, duplicate=2, old=1),
    ]
    changed, (told,) = it.receive(rows, 0)
    intake = msgspec.json.decode(told.payload, type=Intake)
    assert changed
    assert (intake.accepted, intake.duplicate, intake.old) == (1, 2, 1)
    assert intake.newest_ms == 1000


def test_what_changed_nothing_asks_for_no_round() -> None:
    it = cluster()
    it.receive([snapshot_row("a:1", {})], 0)
    changed, _ = it.receive([Row("c", Tag.SNAPSHOT, "a:1", b"", 1000, duplicate=1)], 0)
    assert not changed


def test_memory_survives_its_bytes() -> None:
    it = cluster()
    it.receive(skewed(QUARTERS), 0)
    held(it, 5000)
    assert unpack(pack(it.memory), Memory) == it.memory


def test_the_state_hash_follows_the_state_and_only_the_state() -> None:
    hashes = []
    for cpu in (90.0, 90.0, 91.0):
        it = cluster()
        it.receive([snapshot_row("a:1", {QUARTERS[0]: 1.0}, cpu=cpu)], 0)
        hashes.append(held(it, 5000).state_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_timer_is_set_once_and_follows_the_interval() -> None:
    it = cluster({"round.interval": 5.0})
    off = Intent(id="1", kind=IntentKind.SETTINGS, cluster="c", settings={"round.interval": 0})
    assert it.take([snapshot_row("a:1", {})], 1000)[1] == 6000
    assert it.take([snapshot_row("a:1", {}, at_ms=2000)], 2000)[1] == 0
    assert it.wake(6001)[1] == 11_001
    assert it.take([intent_row(off)], 7000)[1] == 0
    assert it.wake(11_001)[1] == 0


def test_changed_settings_that_a_new_job_contradicts_are_left_out_and_told() -> None:
    before = cluster()
    low = Intent(
        id="1", kind=IntentKind.SETTINGS, cluster="c", settings={"avg.low_threshold": 30.0}
    )
    before.receive([intent_row(low)], 0)
    after = cluster({"avg.high_threshold": 20.0})
    after.memory = before.memory
    assert after.settings.avg.low_threshold == 15.0
    assert held(after, 1).problems[0].startswith("changed settings are left out: avg.low")


def test_an_operator_reads_in_the_round_that_the_owner_split_nothing() -> None:
    """Both words may come in one batch; other declined commands are not about splits."""
    it = cluster()
    whole, *_ = QUARTERS
    for state, event, counter in (
        (State.OWNED, Event.CLAIM, 1),
        (State.SPLITTING, Event.SPLIT, 2),
        (State.OWNED, Event.DECLINE, 3),
        (State.RELEASING, Event.TRANSFER, 4),
        (State.OWNED, Event.DECLINE, 5),
    ):
        it.receive([change_row(whole, "a:1", counter, state, event)], counter)
    problems = held(it, 9).problems
    assert [each for each in problems if "split" in each] == [
        f"{whole}: a:1 found nothing to split; its log says why"
    ]
    assert not [each for each in held(it, 10).problems if "split" in each]
