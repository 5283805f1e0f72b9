"""A batch too large for one Kafka record is recorded in pieces, and replayed like any other."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from simulation.replay.batch_records import decode_batches
from simulation.replay.inquiry import explain_by_replay
from simulation.replay.run import SpanReplay
from simulation.replay.span import Asked, Bound, find_span
from sinks.kafka.publisher import Outgoing
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_job import CLUSTER, RecordedJob
from tests.support.reports import bundle
from trimtab.explaining.verdict import Verdict
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.plan import MOST_AT_ONCE
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.ownership import Change, Record
from trimtab.wire.pieces import PIECE

FREE: Final = MOST_AT_ONCE + 100
SETTINGS: Final = Settings.parse({"replay.export_interval": 30.0, "round.move_deadline": 600.0})


@pytest.fixture(scope="module")
def job() -> RecordedJob:
    """Of a cluster in which very many bundles are given up at once."""
    ran = RecordedJob(KeptTopics(), SETTINGS)
    for broker in ("a:1", "b:1"):
        ran.report(broker, {})
    ran.batch()
    record = Record(state=State.FREE, epoch=Epoch(1, 1))
    names = [bundle(i % 256, 256, f"t/n{i // 256}") for i in range(FREE)]
    ran.topics.publish(
        (
            Outgoing(
                keys.OWNERSHIP,
                f"{CLUSTER}/{name}",
                msgspec.json.encode(
                    Change(cluster=CLUSTER, bundle=name, event=Event.RELEASE, record=record)
                ),
            )
            for name in names
        ),
        ran.at,
    )
    for _ in range(5):
        ran.batch()
    return ran


def test_all_are_repaired_in_batches_that_follow_at_once(job: RecordedJob) -> None:
    batches = decode_batches(job.topics.records[keys.ROUNDS])
    repaired = [[len(each.repairs) for each in batch.rounds] for batch in batches]
    assert repaired == [[], [MOST_AT_ONCE], [FREE - MOST_AT_ONCE], [], [], []]


def test_no_record_is_larger_than_a_piece(job: RecordedJob) -> None:
    records = job.topics.records[keys.ROUNDS]
    assert len(records) > job.number
    assert max(len(record.value or b"") for record in records) == PIECE


@pytest.mark.parametrize(("since", "until"), [(0, 1), (2, 2)])
def test_a_replay_decides_the_same(job: RecordedJob, since: int, until: int) -> None:
    """Of a span that ends with the large batch, and of one that begins after it."""
    asked = Asked(Bound(since, is_number=True), Bound(until, is_number=True))
    with job.readers() as readers:
        steps = list(SpanReplay(readers, find_span(readers.of(keys.ROUNDS, 0), asked)).steps())
    assert steps[-1].batch.batch == until
    assert [step.again for step in steps] == [step.recorded for step in steps]


def test_a_large_round_can_be_asked_why(job: RecordedJob) -> None:
    name = bundle(0, 256, "t/n0")
    with job.readers() as readers:
        answer = explain_by_replay(readers, CLUSTER, Bound(1, is_number=True), name)
    assert answer.as_recorded
    assert answer.explanation.verdict == Verdict.REPAIRED
