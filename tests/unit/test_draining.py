"""Brokers that are to be emptied, and brokers that come back after a loss."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tests.support.clusters import Broker, Bundle, throughputs, view_of
from tests.support.clusters_by_rows import change_row, intent_row, rounds_in, said, snapshot_row
from tests.support.fleets import EIGHTHS, fleet, round_at, two_each, woken
from tests.support.reports import bundle
from trimtab.doubt import Doubt
from trimtab.ownership import State
from trimtab.repair_needs import RepairNeeds
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.wire.intent import Intent, IntentKind

DRAIN_A = said(IntentKind.DRAIN, broker="a:1")


def test_all_bundles_leave_a_drained_broker_in_the_same_batch_its_last_one_too() -> None:
    record = round_at(two_each(), 2000, DRAIN_A)
    assert [(m.bundle, m.source, m.reason) for m in record.moves] == [
        (name, "a:1", "drained") for name in EIGHTHS[:2]
    ]
    assert "a:1" not in {m.destination for m in record.moves}
    assert (record.skipped, record.draining) == ("repair-only", ("a:1",))
    assert set(record.usage) == {"a:1", "b:1", "c:1", "d:1"}


def test_a_bundle_that_rests_leaves_too() -> None:
    it = fleet(
        dict.fromkeys(EIGHTHS, "a:1"),
        round__shedding="avg",
        round__placement="avg",
        round__interval=1.0,
    )
    it.take([snapshot_row("a:1", dict.fromkeys(EIGHTHS, 100.0), cpu=99.0, at_ms=1500)], 1500)
    moves = woken(it, 2000).moves
    assert moves
    landed = [change_row(m.bundle, m.destination, 4) for m in moves]
    reports = [
        snapshot_row(b, {m.bundle: 100.0 for m in moves if m.destination == b}, at_ms=1600)
        for b in ("b:1", "c:1", "d:1")
    ]
    it.receive([*landed, *reports], 2500)
    target = moves[0].destination
    drained = round_at(it, 2900, said(IntentKind.DRAIN, broker=target))
    assert moves[0].bundle in {m.bundle for m in drained.moves}


def test_a_drained_brokers_bundles_spread_evenly() -> None:
    names = [bundle(i, 64) for i in range(64)]
    it = fleet(
        dict.fromkeys(names, "a:1"),
        "abcde",
        round__placement="least-resource-usage",
        placement__distribute_evenly=False,
    )
    it.take([snapshot_row("e:1", {}, cpu=1.0, at_ms=1001)], 1001)
    given = Counter(m.destination for m in round_at(it, 2000, DRAIN_A).moves)
    assert given == {f"{broker}:1": 16 for broker in "bcde"}


def test_a_drain_keeps_to_the_budget_and_goes_on_as_moves_land() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), round__max_moves=3)
    out, due_ms = it.take([DRAIN_A], 2000)
    first = rounds_in(out)[0].moves
    assert (len(first), due_ms) == (3, 3000)
    assert woken(it, 3000).moves == ()
    it.take([change_row(m.bundle, m.destination, 4) for m in first], 3500)
    second = woken(it, 4000).moves
    assert len(second) == 3
    assert not {m.bundle for m in first} & {m.bundle for m in second}


def test_what_is_drained_counts_in_the_budget_of_a_whole_round() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"), round__max_moves=3)
    it.receive([DRAIN_A], 2000)
    (record,) = rounds_in([it.hold_round(2000)])
    assert (len(record.moves), record.refused) == (3, {"budget": 5})


def test_what_was_drained_leaves_the_shedder_less_of_the_budget() -> None:
    drained = Broker(0.1, throughputs(1e6, 1e6), available=False)
    view = view_of({"a": Broker(0.9, throughputs(1e8, 1e8)), "b": Broker(0.1), "d": drained})
    view = replace(view, trouble=RepairNeeds(draining=frozenset("d")))
    asked = {"round.shedding": "overload", "split.enabled": False}
    for most, sources in ((2, ["d", "d"]), (3, ["d", "d", "a"])):
        settings = Settings.parse(asked | {"round.max_moves": most})
        plan, _ = decide(view, RoundState(), settings, 0, np.random.default_rng(1))
        assert [move.source for move in plan.moves] == sources


def test_the_shedder_places_in_sight_of_what_was_drained() -> None:
    """b and c are alike until one of them is given the load of d."""
    heavy, light = Bundle((1e5, 0, 0, 0), name=EIGHTHS[0]), throughputs(1e8, 1e8)
    drained = Broker(0.1, [heavy], available=False)
    view = view_of({"a": Broker(0.9, light), "b": Broker(0.1), "c": Broker(0.1), "d": drained})
    view = replace(view, trouble=RepairNeeds(draining=frozenset("d")))
    settings = Settings.parse({"round.shedding": "overload", "split.enabled": False})
    for seed in range(8):
        plan, _ = decide(view, RoundState(), settings, 0, np.random.default_rng(seed))
        first, second = plan.moves
        assert (first.source, second.source) == ("d", "a")
        assert {first.destination, second.destination} == {"b", "c"}


def test_a_drained_broker_gets_nothing() -> None:
    it = two_each()
    it.take([said(IntentKind.DRAIN, broker="b:1")], 1500)
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    assert {r.broker for r in record.repairs} <= {"c:1", "d:1"}
    assert record.hints is not None
    assert {c.broker for c in record.hints.candidates} == {"c:1", "d:1"}


def test_a_drained_broker_that_is_used_again_gets_bundles() -> None:
    it = two_each()
    it.take([said(IntentKind.DRAIN, broker="b:1"), said(IntentKind.DRAIN, broker="c:1")], 1500)
    it.take([said(IntentKind.UNDRAIN, broker="b:1"), said(IntentKind.DRAIN, broker="d:1")], 1600)
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    assert {r.broker for r in record.repairs} == {"b:1"}


def test_a_heartbeat_bundle_stays_on_a_drained_broker() -> None:
    heartbeat = "pulsar/c/a:1/0x00000000_0xffffffff"
    it = fleet({heartbeat: "a:1", bundle(0, 1): "a:1"})
    assert [m.bundle for m in round_at(it, 2000, DRAIN_A).moves] == [bundle(0, 1)]


def test_a_drain_ignores_an_anti_affinity_group_that_would_keep_a_bundle() -> None:
    owners = {bundle(0, 1, f"t/{i}"): f"{b}:1" for i, b in enumerate("abcd")}
    it = fleet(owners)
    grouped = [
        intent_row(
            Intent(id=n, kind=IntentKind.ANTI_AFFINITY, cluster="c", name=f"t/{n}", group="g")
        )
        for n in "0123"
    ]
    it.take(grouped, 1500)
    assert len(round_at(it, 2000, DRAIN_A).moves) == 1


def test_nothing_is_drained_while_in_doubt() -> None:
    it = two_each()
    it.take([said(IntentKind.DOUBT, name="test", level=Doubt.JITTERY.value)], 1500)
    assert round_at(it, 2000, DRAIN_A).moves == ()


def test_a_bundle_that_lands_on_a_drained_broker_is_looked_at_again() -> None:
    it = two_each()
    it.take([DRAIN_A], 2000)
    assert it.take([change_row(EIGHTHS[7], "a:1", 4)], 3000)[1] == 4000


def test_a_broker_that_came_back_is_held_back_and_then_used_without_waiting() -> None:
    it = two_each()
    lost_b = said(IntentKind.BROKER_LOST, 2000, broker="b:1")
    back = said(IntentKind.BROKER_JOINED, 3000, broker="b:1")
    it.take([lost_b], 2000)
    out, due_ms = it.take([back, snapshot_row("b:1", {}, at_ms=2500)], 3000)
    (record,) = rounds_in(out)
    assert (record.gone, record.held_back, due_ms) == ((), ("b:1",), 13_000)
    placed = round_at(it, 4000, change_row(EIGHTHS[0], None, 2, State.FREE))
    assert placed.repairs[0].broker != "b:1"
    used = woken(it, 13_000)
    assert used.held_back == ()
    assert used.hints is not None
    assert "b:1" in {c.broker for c in used.hints.candidates}


def test_what_a_broker_said_before_it_was_lost_says_nothing_when_it_is_back() -> None:
    it = two_each()
    it.take([said(IntentKind.BROKER_LOST, broker="b:1")], 2000)
    record = round_at(it, 3000, said(IntentKind.BROKER_JOINED, broker="b:1"))
    assert set(record.usage) == {"a:1", "c:1", "d:1"}
    assert set(it.snapshots) == {"a:1", "c:1", "d:1"}
