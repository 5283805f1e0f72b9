"""Commands that are issued once more, beside those that Kafka has."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from simulation.replay.commands import Commands, Issued
from simulation.replay.run import ReplayCycle
from sinks.kafka.publisher import Outgoing
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_batches import START, batch, held
from tests.support.reports import bundle
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.store.requests import BatchId, issue_commands, transitions
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Change, Record, Transition, TransitionOutcome
from trimtab.wire.planned import PlannedMerge, PlannedMove
from trimtab.wire.rounds import BatchRecord, RoundRecord

BUNDLES = [bundle(i) for i in range(2)]
ROUND: RoundRecord = msgspec.structs.replace(
    held("e"),
    moves=tuple(
        PlannedMove(bundle=name, source="a:1", destination="b:1", reason="high-pair", epoch=(1, i))
        for i, name in enumerate(BUNDLES)
    ),
)
BATCH: BatchRecord = msgspec.structs.replace(batch(5), rounds=(ROUND,))
REQUESTS = transitions(ROUND, BatchId("q", 5))


def journalled(request: Transition, state: State = State.RELEASING) -> Outgoing:
    """The change that the script wrote."""
    epoch = Epoch(3, request.expect.counter + 1)
    record = Record(
        state=state, epoch=epoch, owner="a:1", destination="b:1", since=1234, by=request.id
    )
    event = Event.QUARANTINE if state is State.QUARANTINED else request.event
    change = Change(cluster="e", bundle=request.bundle, event=event, record=record)
    return Outgoing(keys.OWNERSHIP, f"e/{request.bundle}", msgspec.json.encode(change))


def published(request: Transition) -> list[Outgoing]:
    """The job's copies of the commands for the brokers."""
    change = msgspec.json.decode(journalled(request).value, type=Change)
    done = TransitionOutcome(
        id=request.id, bundle=request.bundle, accepted=True, record=change.record
    )
    return [outgoing(command) for command in issue_commands([request], [done])]


def outgoing(command: Command) -> Outgoing:
    key = f"{command.cluster}/{command.broker}"
    return Outgoing(keys.COMMANDS, key, msgspec.json.encode(command))


def compared(*records: Outgoing, dropped: int = 0, at: int = START) -> Issued:
    topics = KeptTopics()
    topics.publish(records, at)
    topics.low[keys.COMMANDS] = dropped
    commands = Commands("q", 5)
    commands.take(ReplayCycle(BATCH, {"e": ROUND}, {"e": ROUND}, 0))
    return commands.compared(topics)


def everything() -> list[Outgoing]:
    return [record for each in REQUESTS for record in (journalled(each), *published(each))]


def test_what_was_accepted_is_issued_again_byte_for_byte() -> None:
    assert compared(*everything()) == Issued(requests=2, accepted=2, commands=4)


def test_a_merge_is_issued_again_with_the_lower_ones_epoch() -> None:
    """Both records bear its name, and they are on partitions of their own."""
    merge = PlannedMerge(
        bundle=BUNDLES[0],
        neighbour=BUNDLES[1],
        broker="a:1",
        reason="cold-neighbours",
        epoch=(1, 4),
        neighbour_epoch=(1, 8),
    )
    record = msgspec.structs.replace(ROUND, moves=(), merges=(merge,))
    [request] = transitions(record, BatchId("q", 5))
    lower = journalled(request, State.MERGING)
    upper = journalled(
        msgspec.structs.replace(request, bundle=BUNDLES[1], expect=Epoch(1, 8)), State.MERGING
    )
    topics = KeptTopics()
    topics.publish([upper, lower, *published(request)], START)
    commands = Commands("q", 5)
    commands.take(ReplayCycle(BATCH, {"e": record}, {"e": record}, 0))
    assert commands.compared(topics) == Issued(requests=1, accepted=1, commands=1)


def test_copies_of_a_repeated_batch_count_once() -> None:
    assert compared(*everything(), *published(REQUESTS[0])).commands == 4


def test_what_brokers_issued_is_not_looked_for_in_the_rounds() -> None:
    own = Command(
        id="e/q/5/0/transfer/own",
        cluster="e",
        broker="b:1",
        kind=CommandKind.OWN,
        bundle=BUNDLES[0],
    )
    assert compared(*everything(), outgoing(own)) == compared(*everything())


def test_what_was_refused_has_no_commands() -> None:
    found = compared(journalled(REQUESTS[0]), *published(REQUESTS[0]))
    assert found == Issued(requests=2, accepted=1, commands=2)


def test_a_bundle_that_was_quarantined_instead_has_no_commands() -> None:
    found = compared(*(journalled(each, State.QUARANTINED) for each in REQUESTS))
    assert found == Issued(requests=2, accepted=0)


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        pytest.param({"value": b'{"id":"e/q/5/0/prepare"}'}, "e/q/5/0/prepare", id="value"),
        pytest.param({"key": "e/c:1"}, "key of e/q/5/0/prepare", id="key"),
    ],
)
def test_another_copy_is_a_difference_and_both_sides_are_told(
    change: dict[str, Any], subject: str
) -> None:
    good = published(REQUESTS[0])[0]
    found = compared(*everything(), good._replace(**change))
    [difference] = found.differences
    assert (difference.batch, difference.subject) == (5, subject)
    assert next(iter(change.values())) in (difference.recorded, difference.recorded.encode())
    assert found.commands == 3


def test_a_command_that_kafka_never_had_is_a_difference() -> None:
    told = [record for record in everything() if b"e/q/5/1/transfer" not in record.value]
    [difference] = compared(*told).differences
    assert (difference.subject, difference.recorded) == ("e/q/5/1/transfer", "nothing")


def test_a_command_without_a_request_is_a_difference() -> None:
    stray = published(REQUESTS[0])[0]._replace(value=b'{"id":"e/q/5/9/own"}')
    [difference] = compared(*everything(), stray).differences
    assert (difference.subject, difference.again) == ("e/q/5/9/own", "nothing")


def test_commands_of_other_jobs_do_not_count() -> None:
    others = [
        Outgoing(keys.COMMANDS, "e/a:1", b'{"id":"%s"}' % name)
        for name in (b"e/q/6/0/own", b"w/q/5/0/own", b"e/p/5/0/own", b"move", b"e/q/x/0/own")
    ]
    assert compared(*everything(), *others).differences == []


def test_what_retention_has_dropped_cannot_be_compared() -> None:
    lost = [record for record in everything() if record.topic != keys.COMMANDS]
    later = Outgoing(keys.COMMANDS, "e/a:1", b'{"id":"e/q/900/0/own"}')
    found = compared(later, *lost, later, dropped=1, at=BATCH.at + 1)
    assert (found.expired, found.differences) == (4, [])


def test_commands_of_which_the_journal_has_nothing_cannot_be_judged() -> None:
    told = [record for record in everything() if record.topic != keys.OWNERSHIP]
    found = compared(*told)
    assert found.untold == [request.id for request in REQUESTS]
    assert found.differences == []
