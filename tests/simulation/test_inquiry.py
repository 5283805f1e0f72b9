"""A recorded round that is run again answers as it would have then: without Spark or servers."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from simulation.replay.batches import Contradiction
from simulation.replay.inquiry import Answer, explain_by_replay
from simulation.replay.recorded import Missing
from simulation.replay.span import Bound
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_batches import START
from tests.support.recorded_job import CLUSTER, RecordedJob
from tests.support.reports import bundle
from trimtab.explaining.verdict import Verdict
from trimtab.reasons import Reason, Rest
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation
from trimtab.wire.rounds import BatchRecord

SETTINGS = Settings.parse(
    {
        "round.shedding": "trimtab",
        "round.interval": 10.0,
        "replay.export_interval": 60.0,
        "explain.rounds": 5,
        "explain.subjects": 4,
    }
)
ALL = [bundle(i, 16) for i in range(16)]
HELD = {"hot:1": ALL[:8], "warm:1": ALL[8:12], "cold:1": ALL[12:]}
QUIET = 8
"""Rounds in which the brokers are nearly alike, before hot:1 gets twice as much to do."""


def run(
    topics: KeptTopics, rounds: int, settings: Settings = SETTINGS, query: str = "q"
) -> RecordedJob:
    job = RecordedJob(topics, settings, query)
    for broker, names in HELD.items():
        job.own(broker, *names)
    for number in range(rounds):
        for broker, names in HELD.items():
            times = 2 if broker == "hot:1" and number >= QUIET else 1
            total = 360 if broker == "cold:1" else 400
            noise = 1 + number % 3 / 100
            job.report(broker, {name: times * noise * total / len(names) for name in names})
        job.batch()
    return job


@pytest.fixture(scope="module")
def job() -> RecordedJob:
    """Forty batches, and as many rounds but the first."""
    return run(KeptTopics(), 40)


def asked(job: RecordedJob, number: int, subject: str, query: str | None = None) -> Answer:
    with job.readers() as readers:
        return explain_by_replay(readers, CLUSTER, Bound(number, True), subject, query)


def said(answer: Answer) -> Explanation:
    """As it comes out of Redis."""
    return msgspec.json.decode(msgspec.json.encode(answer.explanation), type=Explanation)


def first_move(job: RecordedJob) -> int:
    return min(number for number, each in job.witnesses.items() if each.scene.plan.moves)


def test_what_was_stored_comes_again_byte_for_byte(job: RecordedJob) -> None:
    for number in (2, first_move(job), max(job.stored)):
        for subject, stored in job.stored[number].items():
            answer = asked(job, number, subject)
            assert answer.as_recorded
            assert said(answer) == stored


def test_a_subject_that_no_round_stored_is_answered(job: RecordedJob) -> None:
    number = first_move(job)
    left = [name for name in [*ALL, *HELD] if name not in job.stored[number]]
    assert left
    for subject in left:
        answer = asked(job, number, subject)
        assert answer.as_recorded
        assert said(answer) == job.told(number, subject)


def test_a_round_that_redis_has_forgotten_is_answered(job: RecordedJob) -> None:
    """Five rounds are kept: the thirtieth before the last is not among them."""
    number = max(job.stored) - 30
    assert number < max(job.stored) - SETTINGS.explain.rounds
    for subject in ("hot:1", ALL[3]):
        assert said(asked(job, number, subject)) == job.told(number, subject)


def test_a_time_is_answered_by_the_last_round_then(job: RecordedJob) -> None:
    """Rounds are ten seconds apart."""
    at = job.witnesses[12].scene.now_ms
    with job.readers() as readers:
        for late in (0, 9_999):
            told = explain_by_replay(readers, CLUSTER, Bound(at + late), "hot:1").explanation
            assert (told.round, told.at) == (12, at)
        with pytest.raises(Missing, match=r"what east held until 2027-01-15T.* is not recorded"):
            explain_by_replay(readers, CLUSTER, Bound(START - 1), "hot:1")


def test_the_setting_that_would_change_the_answer_is_tried(job: RecordedJob) -> None:
    quiet = asked(job, QUIET - 1, "hot:1")
    assert quiet.explanation.rule in (Rest.IN_RANGE, Rest.WITHIN_NOISE)
    assert quiet.tried is not None
    assert (quiet.tried.verdict, quiet.tried.rule) != (Verdict.LEFT, quiet.explanation.rule)
    number = first_move(job)
    moved = job.witnesses[number].scene.plan.moves[0]
    acted = asked(job, number, moved.bundle)
    assert (acted.explanation.verdict, acted.explanation.rule) == (
        Verdict.MOVED,
        Reason.OUT_OF_RANGE,
    )
    assert acted.tried is not None
    assert acted.tried.verdict == Verdict.STAYED


def test_it_starts_from_an_export_where_the_beginning_is_gone(job: RecordedJob) -> None:
    """Of the first fifteen batches nothing is kept."""
    batches = [
        msgspec.json.decode(each.value or b"", type=BatchRecord)
        for each in job.topics.records[keys.ROUNDS]
    ]
    kept = KeptTopics()
    kept.records.update(job.topics.records)
    kept.low[keys.ROUNDS] = 15
    for topic in (keys.LOAD_REPORTS, keys.OWNERSHIP):
        starts = [each.offsets[topic]["0"][0] for each in batches[15:] if topic in each.offsets]
        kept.low[topic] = min(starts, default=len(kept.records[topic]))
    later = replace_topics(job, kept)
    assert said(asked(later, 35, ALL[1])) == job.told(35, ALL[1])
    assert asked(later, 35, ALL[1]).as_recorded
    with pytest.raises(
        Missing, match="round 3 of east is not recorded any more, or not yet: rounds 1"
    ):
        asked(later, 3, "hot:1")


def replace_topics(job: RecordedJob, topics: KeptTopics) -> RecordedJob:
    other = RecordedJob(topics, SETTINGS)
    other.witnesses = job.witnesses
    return other


def test_a_round_that_was_recorded_otherwise_is_said_to_be(job: RecordedJob) -> None:
    number = first_move(job)
    changed = KeptTopics()
    changed.records.update({topic: list(each) for topic, each in job.topics.records.items()})
    for at, record in enumerate(changed.records[keys.ROUNDS]):
        batch = msgspec.json.decode(record.value or b"", type=BatchRecord)
        if any(each.round == number for each in batch.rounds):
            rounds = tuple(msgspec.structs.replace(each, moves=()) for each in batch.rounds)
            value = msgspec.json.encode(msgspec.structs.replace(batch, rounds=rounds))
            changed.records[keys.ROUNDS][at] = replace(record, value=value)
    answer = asked(replace_topics(job, changed), number, "hot:1")
    assert not answer.as_recorded
    assert said(answer) == job.told(number, "hot:1")


def test_of_two_queries_the_newer_answers_unless_one_is_named() -> None:
    topics = KeptTopics()
    run(topics, 4, SETTINGS.changed({"planner.target": 0.5}), "old")
    new = run(topics, 4)
    assert asked(new, 3, "hot:1").explanation.figures["target"] == SETTINGS.planner.target
    assert asked(new, 3, "hot:1", "old").explanation.figures["target"] == 0.5


def test_who_is_not_known_is_told_so(job: RecordedJob) -> None:
    answer = asked(job, 20, "t/nowhere/0x00000000_0xffffffff")
    assert answer.explanation.verdict == Verdict.UNKNOWN
    with pytest.raises(Missing, match="round 900 of east is not recorded any more, or not yet"):
        asked(job, 900, "hot:1")
    with job.readers() as readers, pytest.raises(Missing, match="is that its name"):
        explain_by_replay(readers, "nowhere", Bound(3, True), "hot:1")


def test_an_older_checkpoint_that_was_put_back_is_said(job: RecordedJob) -> None:
    again = KeptTopics()
    again.records.update({topic: list(each) for topic, each in job.topics.records.items()})
    rounds = again.records[keys.ROUNDS]
    rounds.append(replace(rounds[20], offset=len(rounds)))
    with pytest.raises(Contradiction, match="an older checkpoint was put back"):
        asked(replace_topics(job, again), 20, "hot:1")
