"""What the round mends: bundles of brokers that are gone, and steps that take too long."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.clusters_by_rows import (
    change_row,
    intent_row,
    record_row,
    rounds_in,
    said,
    snapshot_row,
)
from tests.support.fleets import EIGHTHS, fleet, round_at, two_each, woken
from tests.support.reports import bundle
from trimtab.doubt import Doubt
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.placement import PLACERS
from trimtab.policies import Isolation
from trimtab.store.requests import BatchId, transitions
from trimtab.wire.command import CommandKind as Told
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row

AVERAGE = {"round__shedding": "avg", "round__placement": "avg"}


def told(record: RoundRecord) -> list[tuple[str, str, str | None, str]]:
    return [(r.bundle, r.event, r.broker, r.reason) for r in record.repairs]


def releasing(name: str, owner: str, destination: str) -> Row:
    epoch = Epoch(1, 2)
    return record_row(
        name, Record(state=State.RELEASING, epoch=epoch, owner=owner, destination=destination)
    )


LOST_A = said(IntentKind.BROKER_LOST, broker="a:1")


def test_the_bundles_of_a_lost_broker_go_to_others_in_the_same_batch() -> None:
    record = round_at(two_each(), 2000, LOST_A)
    assert [(r.bundle, r.event, r.reason, r.epoch) for r in record.repairs] == [
        (name, "assign", "owner-lost", (1, 1)) for name in EIGHTHS[:2]
    ]
    assert len({r.broker for r in record.repairs} - {"a:1"}) == 2
    assert (record.skipped, record.gone, record.unserved) == ("repair-only", ("a:1",), 2)
    assert set(record.usage) == {"b:1", "c:1", "d:1"}


def test_a_whole_round_mends_too() -> None:
    it = two_each()
    it.receive([LOST_A], 2000)
    (record,) = rounds_in([it.hold_round(2000)])
    assert (record.skipped, len(record.repairs)) == ("", 2)


def test_a_bundle_that_is_given_up_is_placed_at_once() -> None:
    record = round_at(two_each(), 2000, change_row(EIGHTHS[0], None, 2, State.FREE))
    ((name, event, broker, reason),) = told(record)
    assert (name, event, reason) == (EIGHTHS[0], "assign", "unowned")
    assert broker is not None


def test_a_dead_source_is_skipped() -> None:
    it = two_each()
    it.take([releasing(EIGHTHS[0], "a:1", "c:1")], 2000)
    assert told(round_at(it, 3000, LOST_A))[0] == (EIGHTHS[0], "assign", "c:1", "owner-lost")


def test_a_dead_source_with_a_dead_destination_goes_elsewhere() -> None:
    it = two_each()
    it.take([releasing(EIGHTHS[0], "a:1", "c:1")], 2000)
    settings = said(
        IntentKind.SETTINGS, settings={"doubt.silent_brokers": 1.0, "doubt.lost_brokers": 1}
    )
    record = round_at(it, 3000, settings, LOST_A, said(IntentKind.BROKER_LOST, broker="c:1"))
    assert {r.broker for r in record.repairs} == {"b:1", "d:1"}


@pytest.mark.parametrize("state", [State.ASSIGNING, State.SPLITTING, State.MERGING])
def test_whatever_a_lost_broker_was_doing_is_taken_from_it(state: State) -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], "a:1", 2, state)], 2000)
    name, event, broker, reason = told(round_at(it, 3000, LOST_A))[0]
    assert (name, event, reason) == (EIGHTHS[0], "assign", "owner-lost")
    assert broker != "a:1"


@pytest.mark.parametrize("state", [State.RELEASING, State.SPLITTING, State.MERGING])
def test_an_overdue_step_of_a_living_owner_is_called_off(state: State) -> None:
    it = two_each()
    assert it.take([change_row(EIGHTHS[0], "a:1", 2, state)], 2000)[1] == 32_000
    assert told(woken(it, 32_000)) == [(EIGHTHS[0], "keep", "a:1", "stuck")]


def test_who_does_not_say_that_it_serves_loses_the_bundle_to_another() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], "a:1", 2, State.ASSIGNING)], 2000)
    ((name, event, broker, reason),) = told(woken(it, 32_000))
    assert (name, event, reason) == (EIGHTHS[0], "assign", "stuck")
    assert broker in {"b:1", "c:1", "d:1"}


def test_even_the_idlest_broker_is_not_asked_twice_while_there_is_another() -> None:
    it = fleet({name: "bcd"[i % 3] + ":1" for i, name in enumerate(EIGHTHS)})
    it.take([change_row(EIGHTHS[0], "a:1", 2, State.ASSIGNING)], 2000)
    assert told(woken(it, 32_000))[0][2] != "a:1"


def test_the_only_broker_is_asked_again() -> None:
    it = fleet({bundle(0, 1): "a:1"}, "a")
    it.take([change_row(bundle(0, 1), "a:1", 2, State.ASSIGNING)], 2000)
    assert told(woken(it, 32_000)) == [(bundle(0, 1), "assign", "a:1", "stuck")]


@pytest.mark.parametrize("state", [State.DELETED, State.QUARANTINED])
def test_what_is_no_longer_a_bundle_or_in_quarantine_is_left_alone(state: State) -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], None, 2, state)], 2000)
    assert [r.bundle for r in round_at(it, 3000, LOST_A).repairs] == [EIGHTHS[1]]


def test_a_heartbeat_bundle_goes_to_no_other_broker() -> None:
    mine = "pulsar/c/a:1/0x00000000_0xffffffff"
    it = fleet({mine: "a:1", bundle(0, 1): "a:1"})
    assert [r.bundle for r in round_at(it, 2000, LOST_A).repairs] == [bundle(0, 1)]


@pytest.mark.parametrize(
    "placement", sorted(name for name in PLACERS.keys() - {"avg"} if not PLACERS[name].counts)
)
def test_a_dead_brokers_bundles_spread_evenly(placement: str) -> None:
    """Also of those that no broker ever reported, with a broker that is far idler than the rest."""
    names = [bundle(i, 64, "t/dead") for i in range(64)]
    it = fleet(dict.fromkeys(names, "a:1"), "abcdefghi", round__placement=placement)
    it.take([snapshot_row("e:1", {}, cpu=1.0, at_ms=1001)], 1001)
    unseen = [change_row(bundle(i, 64, "t/new"), "a:1") for i in range(64)]
    it.take(unseen, 1500)
    given = Counter(r.broker for r in round_at(it, 2000, LOST_A).repairs)
    assert given.keys() == {f"{broker}:1" for broker in "bcdefghi"}
    assert max(given.values()) - min(given.values()) <= 1


def test_what_was_just_placed_counts_although_no_broker_reports_it() -> None:
    owners = {name: f"{'abcd'[i // 2]}:1" for i, name in enumerate(EIGHTHS)}
    it = fleet(owners, placement__distribute_evenly=False)
    given = [
        round_at(it, 2000 + i, change_row(name, None, 2, State.FREE)).repairs[0].broker
        for i, name in enumerate(EIGHTHS[:4])
    ]
    assert len(set(given)) == 4


def test_so_does_what_was_never_reported() -> None:
    it = two_each()
    unknown = [bundle(i, 4, "t/new") for i in range(4)]
    it.take([change_row(name, "a:1") for name in unknown], 1500)
    given = [
        round_at(it, 2000 + i, change_row(name, None, 2, State.FREE)).repairs[0].broker
        for i, name in enumerate(unknown)
    ]
    assert len(set(given)) == 4


def test_bundles_of_a_namespace_are_placed_where_it_has_fewest() -> None:
    """c has none and d and e have one: the first goes to c, the second does not."""
    it = fleet({EIGHTHS[0]: "a:1", EIGHTHS[1]: "d:1", EIGHTHS[2]: "e:1"}, "acde")
    orphans = [change_row(name, None, 2, State.FREE) for name in EIGHTHS[3:5]]
    record = round_at(it, 2000, said(IntentKind.DRAIN, broker="a:1"), *orphans)
    first, second = (r.broker for r in record.repairs)
    assert first == "c:1"
    assert second in {"d:1", "e:1"}


def test_overloaded_brokers_get_nothing_while_others_can() -> None:
    it = two_each()
    hot = [snapshot_row(f"{broker}:1", {}, cpu=95.0, at_ms=1500) for broker in "bc"]
    it.take(hot, 1500)
    assert {r.broker for r in round_at(it, 2000, LOST_A).repairs} == {"d:1"}


def test_a_repair_stays_within_the_isolation_policy() -> None:
    it = two_each()
    policy = Isolation(namespaces=("t/.*",), primary=("[ac]",))
    demand = Intent(id="1", kind=IntentKind.ISOLATION, cluster="c", name="p", isolation=policy)
    it.take([intent_row(demand)], 1500)
    assert {r.broker for r in round_at(it, 2000, LOST_A).repairs} == {"c:1"}


def test_where_no_broker_can_take_a_bundle_it_waits_and_is_tried_again_a_second_later() -> None:
    it = two_each()
    policy = Isolation(namespaces=("t/.*",), primary=("z",))
    demand = Intent(id="1", kind=IntentKind.ISOLATION, cluster="c", name="p", isolation=policy)
    it.take([intent_row(demand)], 1500)
    out, due_ms = it.take([LOST_A], 2000)
    (record,) = rounds_in(out)
    assert (record.repairs, record.obstacles["no-candidate"], due_ms) == ((), 2, 3000)
    assert rounds_in(it.take([], 2500)[0]) == []
    it.take([intent_row(Intent(id="2", kind=IntentKind.ISOLATION, cluster="c", name="p"))], 2600)
    assert len(woken(it, 3000).repairs) == 2


def test_what_was_issued_is_waited_for_until_its_deadline() -> None:
    it = two_each()
    out, due_ms = it.take([LOST_A], 2000)
    first = rounds_in(out)[0].repairs
    assert due_ms == 32_000
    assert rounds_in(it.take([snapshot_row("b:1", {}, at_ms=2500)], 9000)[0]) == []
    assert round_at(it, 9500, said(IntentKind.DRAIN, broker="d:1")).repairs == ()
    assert [r.bundle for r in woken(it, 32_000).repairs] == [r.bundle for r in first]


def test_what_the_journal_shows_is_settled() -> None:
    it = two_each()
    repairs = round_at(it, 2000, LOST_A).repairs
    rows = [change_row(r.bundle, r.broker, 2, State.ASSIGNING) for r in repairs]
    assert rounds_in(it.take(rows, 3000)[0]) == []
    (whole,) = rounds_in([it.hold_round(3500)])
    assert (whole.repairs, whole.obstacles) == ((), {})
    it.take([change_row(r.bundle, r.broker, 3) for r in repairs], 4000)
    assert (it.memory.unsettled, it.memory.in_flight) == ({}, {})
    assert rounds_in(it.wake(32_000)[0]) == []


def test_a_repair_to_a_broker_that_dies_is_not_waited_for() -> None:
    it = two_each()
    broker = next(r.broker for r in round_at(it, 2000, LOST_A).repairs if r.bundle == EIGHTHS[0])
    it.take(
        [said(IntentKind.SETTINGS, settings={"doubt.silent_brokers": 1, "doubt.lost_brokers": 1})],
        1,
    )
    record = round_at(it, 3000, said(IntentKind.BROKER_LOST, broker=broker))
    assert EIGHTHS[0] in {r.bundle for r in record.repairs}
    assert broker not in {r.broker for r in record.repairs}


def test_a_move_off_a_broker_that_dies_is_not_waited_for() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), **AVERAGE, round__interval=1.0)
    it.take([snapshot_row("a:1", dict.fromkeys(EIGHTHS, 100.0), cpu=99.0, at_ms=1500)], 1500)
    (moved, *_) = woken(it, 2000).moves
    assert moved.bundle in {r.bundle for r in round_at(it, 2500, LOST_A).repairs}


def test_a_broker_that_is_back_keeps_what_it_has() -> None:
    it = two_each()
    joined = said(IntentKind.BROKER_JOINED, broker="a:1")
    record = round_at(it, 2000, LOST_A, joined)
    assert (record.repairs, record.gone) == ((), ())
    assert it.memory.unsettled == {}


def test_a_paused_cluster_is_not_mended_until_it_resumes() -> None:
    it = two_each()
    paused = round_at(it, 2000, said(IntentKind.PAUSE), LOST_A)
    assert (paused.skipped, paused.repairs) == ("paused", ())
    assert len(round_at(it, 9000, said(IntentKind.RESUME)).repairs) == 2


def test_a_cluster_that_does_not_shed_is_mended() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), round__enabled=False)
    it.receive([LOST_A], 2000)
    (record,) = rounds_in([it.hold_round(2000)])
    assert (record.skipped, len(record.repairs)) == ("disabled", 8)


def test_observing_only_mends_nothing() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), round__observe_only=True)
    record = round_at(it, 2000, LOST_A)
    assert (record.repairs, record.hints, it.memory.in_flight) == ((), None, {})
    assert it.take([change_row(EIGHTHS[0], None, 2, State.FREE)], 3000)[1] == 0


def test_a_quarantined_bundle_is_counted_among_the_unserved_since_it_is() -> None:
    it = two_each()
    ill = Record(state=State.QUARANTINED, epoch=Epoch(1, 2), falls=3, since=1500)
    it.take([record_row(EIGHTHS[0], ill, Event.QUARANTINE)], 2000)
    (record,) = rounds_in([it.hold_round(3000)])
    assert (record.unserved, record.quarantined, record.unserved_since) == (1, 1, 1500)
    lost = round_at(it, 4000, LOST_A)
    assert (lost.unserved, lost.quarantined) == (2, 1)


def test_a_readmission_frees_the_bundle_and_the_next_round_places_it() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], None, 2, State.QUARANTINED)], 2000)
    record = round_at(it, 3000, said(IntentKind.READMIT, bundle=EIGHTHS[0]))
    assert told(record) == [(EIGHTHS[0], "readmit", None, "readmitted")]
    freed = round_at(it, 4000, change_row(EIGHTHS[0], None, 3, State.FREE))
    assert [(r.event, r.reason) for r in freed.repairs] == [("assign", "unowned")]
    assert it.memory.readmitted == ()


def test_what_is_not_in_quarantine_is_not_readmitted() -> None:
    it = two_each()
    it.receive([said(IntentKind.READMIT, id="1", bundle=EIGHTHS[0])], 2000)
    (record,) = rounds_in([it.hold_round(2000)])
    assert record.repairs == ()
    assert record.problems == (f"intent 1: bundle: {EIGHTHS[0]} is not quarantined, but Owned",)


def test_a_batch_holds_one_round_even_where_two_are_due() -> None:
    it = two_each()
    assert it.memory.due_ms == 61_000
    taken, _ = it.take([LOST_A], 61_000)
    record = woken(it, 61_000)
    assert rounds_in(taken) == []
    assert (record.skipped, len(record.repairs)) == ("", 2)


def test_a_timer_that_an_earlier_one_replaced_does_nothing() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], "a:1", 2, State.ASSIGNING)], 2000)
    before = it.memory
    assert it.wake(31_000) == ([], 0)
    assert it.memory == before
    woken(it, 32_000)
    assert woken(it, 61_000).skipped != "repair-only"


def test_a_repair_becomes_one_command_after_moves_and_splits() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[7], "d:1", 2, State.RELEASING)], 2000)
    it.receive([LOST_A], 32_000)
    (record,) = rounds_in([it.hold_round(32_000)])
    first, second, third = transitions(record, BatchId("q", 7))
    assert [each.id for each in (first, second, third)] == [f"c/q/7/{i}" for i in range(3)]
    assert (first.event, first.expect, first.broker) == (
        Event.ASSIGN,
        Epoch(1, 1),
        record.repairs[0].broker,
    )
    (command,) = first.commands
    assert (command.id, command.kind, command.broker) == ("c/q/7/0/own", Told.OWN, first.broker)
    assert (first.within_ms, third.within_ms) == (30_000, 30_000)
    (kept,) = third.commands
    assert (third.event, kept.kind, kept.broker) == (Event.KEEP, Told.OWN, "d:1")


def test_where_many_have_missed_a_renewal_the_first_loss_is_not_believed() -> None:
    """All agents stopped: one lease runs out first, and the others will within seconds."""
    it = two_each()
    late = said(IntentKind.BROKER_LOST, broker="a:1", brokers=["b:1", "c:1", "d:1"])
    record = round_at(it, 3000, late)
    assert (record.doubt, record.repairs) == ("unstable", ())
    # They were not lost after all.
    assert len(woken(it, 14_000).repairs) == 2


def level(doubt: Doubt) -> Row:
    return said(IntentKind.DOUBT, name="test", level=doubt.value)


def test_while_nothing_can_be_believed_nothing_is_done() -> None:
    it = two_each()
    it.take([level(Doubt.UNSTABLE)], 1500)
    record = round_at(it, 2000, LOST_A)
    assert (record.skipped, record.repairs) == ("doubt", ())
    assert (record.doubt, record.causes) == ("unstable", {"test": "unstable"})
    settled = round_at(it, 3000, level(Doubt.STABLE))
    assert (settled.doubt, settled.causes, len(settled.repairs)) == ("stable", {}, 2)


def test_in_jitter_repairs_wait_and_nothing_else_is_done() -> None:
    it = fleet({name: f"{'abcd'[i // 2]}:1" for i, name in enumerate(EIGHTHS)}, doubt__delay=10.0)
    it.take([level(Doubt.JITTERY)], 1500)
    out, due_ms = it.take([LOST_A], 2000)
    assert rounds_in(out)[0].repairs == ()
    assert due_ms == 12_000
    assert len(woken(it, 12_000).repairs) == 2
    (whole,) = rounds_in([it.hold_round(13_000)])
    assert (whole.skipped, whole.doubt) == ("doubt", "jittery")


def test_an_intent_that_says_nothing_new_holds_no_round() -> None:
    it = two_each()
    round_at(it, 2000, level(Doubt.JITTERY))
    assert rounds_in(it.take([level(Doubt.JITTERY)], 3000)[0]) == []


def test_when_all_brokers_are_lost_at_once_nothing_is_taken_from_them() -> None:
    it = two_each()
    rows = [said(IntentKind.BROKER_LOST, broker=f"{broker}:1") for broker in "abcd"]
    record = round_at(it, 2000, *rows)
    assert (record.skipped, record.repairs, record.moves) == ("doubt", (), ())
    assert record.causes["silence"] == "unstable"


def test_a_lost_broker_is_remembered_as_long_as_it_owns_a_bundle() -> None:
    it = two_each()
    it.take([level(Doubt.UNSTABLE), LOST_A], 2000)
    (later,) = rounds_in([it.hold_round(9_000_000)])
    assert (later.gone, later.unserved) == (("a:1",), 2)
    it.receive([change_row(name, "b:1", 9) for name in EIGHTHS[:2]], 9_000_000)
    (settled,) = rounds_in([it.hold_round(9_000_001)])
    assert (settled.gone, settled.unserved) == ((), 0)


OBSERVING = said(IntentKind.SETTINGS, settings={"round.observe_only": True})
ACTING = said(IntentKind.SETTINGS, settings={"round.observe_only": False})


def test_a_broker_that_died_while_the_job_only_observed_is_mended_once_it_acts() -> None:
    """However long that was, and though its loss was told once."""
    it = two_each()
    it.take([OBSERVING], 2000)
    it.take([LOST_A], 3000)
    for minute in range(1, 81):
        now_ms = 60_000 * minute
        it.take(
            [snapshot_row(broker, {}, at_ms=now_ms) for broker in ("b:1", "c:1", "d:1")], now_ms
        )
        it.hold_round(now_ms)
    it.take([ACTING], 81 * 60_000)
    record = rounds_in([it.hold_round(82 * 60_000)])[0]
    assert {r.bundle for r in record.repairs} == set(EIGHTHS[:2])


def test_a_bundle_that_was_readmitted_while_the_job_only_observed_comes_back_once_it_acts() -> None:
    it = two_each()
    it.take([change_row(EIGHTHS[0], None, 2, State.QUARANTINED)], 1000)
    it.take([OBSERVING], 2000)
    it.take([said(IntentKind.READMIT, bundle=EIGHTHS[0])], 3000)
    it.hold_round(4000)
    it.take([ACTING], 5000)
    record = rounds_in([it.hold_round(6000)])[0]
    assert told(record) == [(EIGHTHS[0], "readmit", None, "readmitted")]
