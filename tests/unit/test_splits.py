"""Bundles that are divided, and where their halves go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from tests.support.clusters_by_rows import change_row, held, skewed, snapshot_row
from tests.support.clusters_by_rows import cluster as empty_cluster
from tests.support.pulsar import PULSAR
from tests.support.reports import bundle
from trimtab.doubt import Doubt
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.plan import Plan, Split
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.store.requests import BatchId, transitions
from trimtab.view import View
from trimtab.wire.command import CommandKind

HOT = "t/n/0x00000000_0x40000000"
LIMITS = {"split.max_rate": 1000.0}
GRACE_MS = 1_800_000


def fleet(rate: float = 2000.0) -> View:
    """``a`` has one bundle of ``rate`` messages/s and a small one, ``b`` a small one."""
    hot = Bundle((rate, 0, 0, 0), name=HOT, topics=10)
    small = Bundle((1.0, 0, 0, 0), topics=10)
    view = cluster(a=Broker(0.3, [hot, small]), b=Broker(0.3, [small]))
    return replace(view, sizes={"t/n": 4})


def hold(
    view: View,
    state: RoundState | None = None,
    now_ms: int = 0,
    settings: Mapping[str, object] | None = None,
) -> tuple[Plan, RoundState]:
    rng = np.random.default_rng(1)
    chosen = Settings.parse({**PULSAR, **LIMITS, **(settings or {})})
    return decide(view, state or RoundState(), chosen, now_ms, rng)


def test_a_bundle_over_a_limit_is_divided_by_its_owner() -> None:
    plan, state = hold(fleet())
    assert plan.splits == (Split(HOT, "a", Reason.TOO_MANY_MESSAGES, Epoch(0, 0)),)
    assert plan.skipped is None
    assert state.recent == {HOT: 0}


def test_at_the_limit_it_stays_whole() -> None:
    plan, _ = hold(fleet(1000.0))
    assert (plan.splits, plan.skipped) == ((), Rule.BALANCED)


def test_a_divided_bundle_rests_for_the_grace_period() -> None:
    """Its owner may have found no place to divide it."""
    _, state = hold(fleet())
    resting, state = hold(fleet(), state, GRACE_MS)
    again, _ = hold(fleet(), state, GRACE_MS + 1)
    assert (resting.splits, len(again.splits)) == ((), 1)


def test_what_is_divided_does_not_move() -> None:
    heavy = Bundle((2000.0, 0, 4e7, 0), name=HOT, topics=10)
    view = cluster(a=Broker(0.9, [heavy, Bundle((1, 0, 1e7, 0))]), b=Broker(0.1, [Bundle()]))
    view = replace(view, sizes={"t/n": 4})
    plan, _ = hold(view)
    assert [split.bundle for split in plan.splits] == [HOT]
    assert HOT not in {move.bundle for move in plan.moves}


def test_the_instantaneous_trigger_remembers_its_hits() -> None:
    settings = {"split.trigger": "instantaneous", "split.hits": 1}
    first, state = hold(fleet(), settings=settings)
    second, _ = hold(fleet(), state, 1000, settings)
    assert (first.splits, [split.bundle for split in second.splits]) == ((), [HOT])


def test_nothing_is_divided_where_splitting_is_off() -> None:
    plan, _ = hold(fleet(), settings={"split.enabled": False})
    assert plan.splits == ()


OFF = {"round.enabled": False}


def test_with_shedding_off_bundles_are_split_and_none_is_shed() -> None:
    heavy = Bundle((2000.0, 0, 4e7, 0), name=HOT, topics=10)
    load = Bundle((1, 0, 1e7, 0))
    view = cluster(a=Broker(0.9, [heavy, load, load]), b=Broker(0.1, [Bundle()]))
    view = replace(view, sizes={"t/n": 4})
    shed, _ = hold(view)
    plan, state = hold(view, settings=OFF)
    assert [split.bundle for split in plan.splits] == [HOT]
    assert (len(shed.moves) > 0, plan.moves) == (True, ())
    assert plan.skipped is Rule.DISABLED
    assert state.recent == {HOT: 0}


def test_with_shedding_and_splits_off_nothing_is_split() -> None:
    plan, _ = hold(fleet(), settings=OFF | {"split.enabled": False})
    assert (plan.changes, plan.skipped) == (0, Rule.DISABLED)


@pytest.mark.parametrize("rule", ["paused", "doubt", "one broker"])
def test_what_stops_every_strategy_stops_splits_while_shedding_is_off(rule: str) -> None:
    view = fleet()
    if rule == "doubt":
        view = replace(view, trouble=replace(view.trouble, doubt=Doubt.JITTERY))
    if rule == "one broker":
        gone = replace(view.brokers, available=view.brokers.available & np.array([True, False]))
        view = replace(view, brokers=gone)
    plan, _ = hold(view, RoundState(paused=rule == "paused"), settings=OFF)
    assert (plan.splits, plan.skipped is Rule.DISABLED) == ((), False)


def test_observing_only_shows_splits_and_remembers_none() -> None:
    plan, state = hold(fleet(), settings={"round.observe_only": True})
    assert (len(plan.splits), state.recent) == (1, {})


HALVES = ("t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000")


def test_halves_look_for_a_new_place() -> None:
    """``a`` carries 2 messages/s and ``b`` 1.5: the first half goes, the second had better stay."""
    halves = [Bundle((1.0, 0, 0, 0), name=name, topics=1) for name in HALVES]
    view = cluster(a=Broker(0.3, [*halves, Bundle()]), b=Broker(0.3, [Bundle((1.5, 0, 0, 0))]))
    state = RoundState(halves=dict.fromkeys(HALVES, 0))
    plan, after = hold(view, state, settings={"placement.distribute_evenly": False})
    assert [(m.bundle, m.destination, m.reason) for m in plan.moves] == [
        (HALVES[0], "b", Reason.DIVIDED)
    ]
    assert [(r.bundle, r.rule) for r in plan.refusals] == [(HALVES[1], Rule.SAME_BROKER)]
    assert after.halves == {}


@pytest.mark.parametrize("shedding", ["threshold", "trimtab"])
def test_halves_look_for_a_place_while_shedding_is_off(shedding: str) -> None:
    """Under trimtab too, which places them itself only while it is asked."""
    halves = [Bundle((1.0, 0, 0, 0), name=name, topics=1) for name in HALVES]
    view = cluster(a=Broker(0.3, [*halves, Bundle()]), b=Broker(0.3, [Bundle((1.5, 0, 0, 0))]))
    state = RoundState(halves=dict.fromkeys(HALVES, 0))
    settings = OFF | {"round.shedding": shedding, "placement.distribute_evenly": False}
    plan, after = hold(view, state, settings=settings)
    assert [(m.bundle, m.destination) for m in plan.moves] == [(HALVES[0], "b")]
    assert (plan.skipped, after.halves) == (Rule.DISABLED, {})


def test_halves_stay_where_trimtab_sheds_until_its_plan_moves_them() -> None:
    """Items 000-21 and 002-20: the same children leave under Pulsar's shedders, see above."""
    halves = [Bundle((1.0, 0, 0, 0), name=name, topics=1) for name in HALVES]
    view = cluster(a=Broker(0.3, [*halves, Bundle()]), b=Broker(0.3, [Bundle((1.5, 0, 0, 0))]))
    state = RoundState(halves=dict.fromkeys(HALVES, 0))
    settings = {"round.shedding": "trimtab", "placement.distribute_evenly": False}
    plan, after = hold(view, state, settings=settings)
    assert (plan.moves, plan.refusals, after.halves) == ((), (), {})


def test_children_that_no_broker_reports_yet_are_waited_for() -> None:
    _, state = hold(fleet(1.0), RoundState(halves=dict.fromkeys(HALVES, 0)), 1000)
    assert set(state.halves) == set(HALVES)
    _, state = hold(fleet(1.0), state, GRACE_MS + 1)
    assert state.halves == {}


QUARTERS = [bundle(i, 4) for i in range(4)]


def test_the_owner_is_told_to_divide_and_how() -> None:
    it = empty_cluster({"split.max_rate": 50.0, "split.algorithm": "topic_count_equally_divide"})
    it.receive(skewed(QUARTERS), 0)
    record = held(it, 5000)
    (request, *_) = transitions(record, BatchId("query-1", 7))
    assert (request.id, request.event) == ("c/query-1/7/0", Event.SPLIT)
    assert (request.expect, request.broker) == (Epoch(1, 1), None)
    (command,) = request.commands
    assert (command.id, command.broker, command.kind) == (
        "c/query-1/7/0/split",
        "a:1",
        CommandKind.SPLIT,
    )
    assert command.division is not None
    assert command.division.algorithm == "topic_count_equally_divide"
    assert set(it.memory.in_flight) == set(QUARTERS)


def test_what_is_being_divided_is_left_alone() -> None:
    it = empty_cluster({"split.max_rate": 50.0})
    it.receive(skewed(QUARTERS), 0)
    it.receive([change_row(QUARTERS[0], "a:1", 2, State.SPLITTING)], 0)
    record = held(it, 5000)
    assert QUARTERS[0] not in {split.bundle for split in record.splits}
    assert record.obstacles["in-flight"] == 1


def test_the_halves_of_a_divided_bundle_wait_for_a_place() -> None:
    it = empty_cluster()
    it.receive(skewed(QUARTERS), 0)
    halves = [bundle(i, 8) for i in range(2)]
    it.receive(
        [
            change_row(QUARTERS[0], None, 3, State.DELETED, Event.RETIRE),
            *(change_row(half, "a:1", 3, State.OWNED, Event.RETIRE) for half in halves),
        ],
        0,
    )
    assert set(it.memory.round.halves) == set(halves)
    assert it.memory.sizes == {"t/ns": 5}
    assert it.memory.flawed == {}
    it.receive([snapshot_row("a:1", dict.fromkeys([*halves, *QUARTERS[1:]], 100.0), cpu=90.0)], 0)
    record = held(it, 5000)
    assert {move.bundle for move in record.moves if move.reason == "divided"} <= set(halves)
    assert it.memory.round.halves == {}


def test_halves_stay_where_they_are_if_so_wished() -> None:
    it = empty_cluster({"split.unload_children": False})
    it.receive(skewed(QUARTERS), 0)
    it.receive([change_row(bundle(0, 8), "a:1", 3, State.OWNED, Event.RETIRE)], 0)
    assert it.memory.round.halves == {}
