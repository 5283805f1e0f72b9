"""A replay has the settings that intents had changed by then, from whichever export it starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulation.replay.batch_records import decode_batches
from simulation.replay.run import SpanReplay
from simulation.replay.span import Asked, Bound, find_span
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_job import RecordedJob
from tests.support.reports import bundle
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.intent import IntentKind
from trimtab.wire.rounds import RoundRecord

SETTINGS = Settings.parse({"round.interval": 10.0, "replay.export_interval": 30.0})
CHANGED = {
    "loadBalancerLoadSheddingStrategy": "ThresholdShedder",
    "loadBalancerSheddingGracePeriodMinutes": 5,
}
SET, PART, ALL, END = 4, 10, 16, 22
"""Batches: a change, a reset of one setting, a reset of all; how many there are."""


@pytest.fixture(scope="module")
def job() -> RecordedJob:
    ran = RecordedJob(KeptTopics(), SETTINGS)
    names = [bundle(i) for i in range(4)]
    ran.own("a:1", *names)
    for number in range(END):
        if number == SET:
            ran.intend(IntentKind.SETTINGS, settings=CHANGED)
        if number == PART:
            ran.intend(IntentKind.RESET, names=["round.grace_period"])
        if number == ALL:
            ran.intend(IntentKind.RESET)
        ran.report("a:1", dict.fromkeys(names, 100.0 + number % 3))
        ran.report("b:1", {})
        ran.batch()
    return ran


def rounds(job: RecordedJob) -> Iterator[tuple[int, RoundRecord]]:
    for batch in decode_batches(job.topics.records[keys.ROUNDS]):
        for record in batch.rounds:
            yield batch.batch, record


def test_the_rounds_follow_each_change(job: RecordedJob) -> None:
    both = {"round.shedding": "threshold", "round.grace_period": 300.0}
    told = dict(rounds(job))
    assert [told[at].overrides for at in (SET - 1, SET, PART, ALL)] == [
        {},
        both,
        {"round.shedding": "threshold"},
        {},
    ]
    strategies = [told[at].strategy for at in (SET - 1, SET, ALL - 1, ALL)]
    assert strategies == ["trimtab", "threshold", "threshold", "trimtab"]


@pytest.mark.parametrize("since", [1, SET, SET + 4, PART, PART + 4, ALL, ALL + 4])
def test_a_replay_from_before_between_and_after_the_changes_decides_the_same(
    job: RecordedJob, since: int
) -> None:
    asked = Asked(Bound(since, is_number=True), Bound(END - 1, is_number=True))
    with job.readers() as readers:
        span = find_span(readers.of(keys.ROUNDS, 0), asked)
        steps = list(SpanReplay(readers, span).steps())
    assert span.starts is not None
    assert [step.again for step in steps] == [step.recorded for step in steps]
    assert steps[-1].batch.batch == END - 1
