"""A round's moves as requests to the store, and its answers as commands."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.clusters_by_rows import cluster, held, skewed
from tests.support.reports import bundle
from trimtab.model import LONGEST_NAME, Epoch
from trimtab.ownership import Event, State
from trimtab.store.requests import BatchId, is_of_a_broker, issue_commands, transitions
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.ownership import Record, Refused, TransitionOutcome
from trimtab.wire.rounds import RoundRecord

BATCH = BatchId("query-1", 7)


def decided() -> RoundRecord:
    it = cluster({"round.move_deadline": 30.0})
    it.receive(skewed([bundle(0, 2), bundle(1, 2)]), 0)
    return held(it, 5000)


def test_a_move_tells_the_source_to_hand_over_and_the_destination_to_prepare() -> None:
    (request,) = transitions(decided(), BATCH)
    assert (request.id, request.event) == ("c/query-1/7/0", Event.TRANSFER)
    assert (request.expect, request.broker) == (Epoch(1, 1), "b:1")
    assert request.within_ms == 30_000
    assert [(c.id, c.broker, c.kind) for c in request.commands] == [
        ("c/query-1/7/0/prepare", "b:1", CommandKind.PREPARE),
        ("c/query-1/7/0/transfer", "a:1", CommandKind.TRANSFER),
    ]


def test_the_next_owners_command_says_of_the_move_what_the_transfers_does() -> None:
    (request,) = transitions(decided(), BATCH)
    transfer = request.commands[1].stamped(Epoch(1, 2), 1000, 2000)
    assert transfer.handed_on("a:1", "b:1") == Command(
        id="c/query-1/7/0/transfer/own",
        cluster="c",
        broker="b:1",
        kind=CommandKind.OWN,
        bundle=transfer.bundle,
        source="a:1",
        reason=transfer.reason,
        plan="c/1",
    )


def test_a_repeated_batch_asks_with_the_same_ids_and_another_batch_does_not() -> None:
    record = decided()
    assert transitions(record, BATCH) == transitions(record, BATCH)
    (later,) = transitions(record, replace(BATCH, batch=8))
    assert later.id == "c/query-1/8/0"


def test_observing_only_asks_for_nothing() -> None:
    assert transitions(msgspec.structs.replace(decided(), observe_only=True), BATCH) == ()


def test_accepted_requests_become_commands_as_the_script_stamped_them() -> None:
    requests = transitions(decided(), BATCH)
    record = Record(state=State.RELEASING, epoch=Epoch(4, 2), owner="a:1", since=1_000)
    outcome = TransitionOutcome(
        id=requests[0].id, bundle=requests[0].bundle, accepted=True, record=record
    )
    first, second = issue_commands(requests, [outcome])
    assert (first.epoch, first.generation) == (Epoch(4, 2), 4)
    assert (first.issued_at, first.deadline) == (1_000, 31_000)
    assert second.kind is CommandKind.TRANSFER


def test_a_refused_request_issues_nothing() -> None:
    requests = transitions(decided(), BATCH)
    refused = TransitionOutcome(
        id=requests[0].id, bundle=requests[0].bundle, accepted=False, reason=Refused.STALE_EPOCH
    )
    assert list(issue_commands(requests, [refused])) == []


@pytest.mark.parametrize(
    ("name", "of_a_broker"),
    [
        ("c/query-1/7/0/own", False),
        ("c/query-1/7/0/transfer", False),
        ("c/query-1/7/0/transfer/own", True),
        ("b:8080/t/n/0x00000000_0x80000000/0.0/assign/own", True),
        ("c/query-1/7/0/transfer/own/unload", False),
    ],
)
def test_a_brokers_command_is_told_by_its_name(name: str, of_a_broker: bool) -> None:
    assert is_of_a_broker(name) is of_a_broker


def test_nothing_is_asked_of_a_bundle_whose_name_no_record_could_hold() -> None:
    record = decided()
    (move,) = record.moves
    absurd = msgspec.structs.replace(move, bundle="t/" + "n" * LONGEST_NAME + "/0x0_0x1")
    odd = msgspec.structs.replace(record, moves=(absurd, move))
    assert [request.id for request in transitions(odd, BATCH)] == ["c/query-1/7/1"]


def test_a_division_without_positions_is_written_as_earlier_versions_wrote_it() -> None:
    old = b'{"algorithm":"range_equally_divide","maxRate":1.0,"maxThroughput":2.0,"difference":0.1}'
    division = msgspec.json.decode(old, type=Division)
    assert division.positions == ()
    assert msgspec.json.encode(division) == old
    there = msgspec.structs.replace(division, positions=(0x33000000,))
    assert msgspec.json.decode(msgspec.json.encode(there), type=Division) == there
