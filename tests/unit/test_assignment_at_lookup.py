"""Bundles assigned at lookups: a move is an unload, and the next lookup assigns the bundle."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import change_row, cluster, held, said, skewed
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.ownership import Event, State
from trimtab.store.requests import BatchId, transitions
from trimtab.wire.command import CommandKind
from trimtab.wire.intent import IntentKind
from trimtab.wire.rounds import RoundRecord

MOVED, STAYS = bundle(0, 2), bundle(1, 2)
AT_LOOKUP = {"round.assignment": "at-lookup", "round.move_deadline": 30.0}


def unloading(settings: dict[str, object] | None = None) -> tuple[Cluster, RoundRecord]:
    """Broker a has two bundles; the round at 5 s moves one towards b."""
    it = cluster(AT_LOOKUP | (settings or {}))
    it.receive(skewed([MOVED, STAYS]), 0)
    record = held(it, 5000)
    assert [(move.bundle, move.destination) for move in record.moves] == [(MOVED, "b:1")]
    return it, record


def released(it: Cluster) -> None:
    """The owner unloads it, and no client asks for it yet."""
    for counter, state, event in (
        (2, State.RELEASING, Event.UNLOAD),
        (3, State.FREE, Event.RELEASE),
    ):
        owner = "a:1" if state is State.RELEASING else None
        it.receive([change_row(MOVED, owner, counter, state, event)], 6000)


def test_a_move_tells_the_owner_to_unload_and_no_broker_to_prepare() -> None:
    (request,) = transitions(unloading()[1], BatchId("q", 7))
    assert (request.event, request.broker) == (Event.UNLOAD, None)
    assert request.within_ms == 30_000
    (command,) = request.commands
    assert (command.id, command.broker) == ("c/q/7/0/unload", "a:1")
    assert (command.kind, command.destination) == (CommandKind.UNLOAD, None)


def test_the_next_lookup_is_told_what_the_plan_proposes() -> None:
    _, record = unloading()
    assert record.hints is not None
    assert record.hints.proposed == {MOVED: "b:1"}


def test_assigned_ahead_nothing_is_proposed() -> None:
    _, record = unloading({"round.assignment": "ahead"})
    assert record.hints is not None
    assert record.hints.proposed == {}


def test_the_proposal_stands_until_the_bundle_has_an_owner() -> None:
    it, _ = unloading()
    released(it)
    waiting = held(it, 7000)
    assert waiting.hints is not None
    assert waiting.hints.proposed == {MOVED: "b:1"}
    it.receive([change_row(MOVED, "b:1", 4, State.ASSIGNING, Event.ASSIGN)], 8000)
    assigned = held(it, 9000)
    assert assigned.hints is not None
    assert assigned.hints.proposed == {}


def test_the_proposal_ends_with_the_deadline_of_the_move() -> None:
    it, _ = unloading()
    released(it)
    late = held(it, 36_000)
    assert late.hints is not None
    assert MOVED not in late.hints.proposed


@pytest.mark.parametrize(("assignment", "repaired"), [("at-lookup", []), ("ahead", [MOVED])])
def test_a_bundle_without_an_owner_waits_for_a_lookup_only_where_lookups_assign(
    assignment: str, repaired: list[str]
) -> None:
    it, _ = unloading({"round.assignment": assignment})
    released(it)
    record = held(it, 40_000)
    assert [repair.bundle for repair in record.repairs] == repaired
    assert record.unserved == len(repaired)


def test_no_round_is_held_for_bundles_that_wait_for_a_lookup() -> None:
    it, _ = unloading()
    released(it)
    assert it.memory.repair_ms == 0


def test_a_bundle_of_a_lost_broker_does_not_wait_for_a_lookup() -> None:
    it, _ = unloading({"doubt.delay": 0.0})
    it.receive([said(IntentKind.BROKER_LOST, broker="a:1")], 6000)
    record = held(it, 60_000)
    assert {repair.event for repair in record.repairs} == {"assign"}
    assert STAYS in {repair.bundle for repair in record.repairs}


def test_back_on_ahead_what_is_free_is_assigned() -> None:
    it, _ = unloading()
    released(it)
    ahead = said(IntentKind.SETTINGS, settings={"round.assignment": "ahead"})
    it.receive([ahead], 40_000)
    record = held(it, 41_000)
    assert [(repair.bundle, repair.event) for repair in record.repairs] == [(MOVED, "assign")]
