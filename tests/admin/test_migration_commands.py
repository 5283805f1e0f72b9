"""What an operator reads of migrations at a terminal: what happens, what holds it up, what next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from admin import cli
from admin.commands import migration
from admin.migration_notes import notes, waiting, waits_for, why
from control.migration.progress import report, tell
from control.migration.waiting_bundles import Cause, WaitingBundle
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from tests.api.prompt_job import PromptJob, run_prompt_job
from tests.support.green_server import green
from tests.support.migrations import RUNNING
from trimtab.migration.life import MigrationEvent, MigrationState
from trimtab.migration.migration import Counts, Migration, Wave
from trimtab.migration.progress import advance
from trimtab.migration.topic_life import TopicState
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import migrated_key, topics_key
from trimtab.wire.topics import TopicRecord, Waiting

NOW = 60_000
SOME = Counts(active=3, migrated=1, attempts=4)


class Counted:
    """As Redis counts the topics of one namespace."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def counts(self, *_: str) -> dict[str, Counts]:
        return {"0": self._counts, "t/one": self._counts}


def say(
    it: Migration, counts: Counts = SOME, now_ms: int = NOW, bundles: tuple[WaitingBundle, ...] = ()
) -> list[str]:
    """The notes of a migration as the API tells it."""
    told = tell(it, Counted(counts), now_ms, lambda *_: bundles)
    return notes(msgspec.to_builtins(told), "blue")


def test_the_first_lines_say_what_goes_where_and_how_far_it_is() -> None:
    it = replace(RUNNING, by="ann", reason="a new cluster", waves=(Wave(("t/one",)),))
    assert say(it) == [
        "m: cluster to http://green:8080, begun at 1970-01-01T00:00:00.000+00:00 by ann: "
        "a new cluster",
        "running, wave 1 of 2: 1 of 4 topics on green, 0 messages left to read on blue, "
        "0 of 4 steps failed",
    ]


@pytest.mark.parametrize(
    ("stays", "began", "said"),
    [
        (3, 0, ", 3 stay there: written on green, or lost here"),
        (3, 3, ", 3 began there"),
        (3, 1, ", 1 began there, 2 stay there: written on green, or lost here"),
    ],
)
def test_what_began_on_green_is_told_apart_from_what_it_took_writes_of(
    stays: int, began: int, said: str
) -> None:
    counts = Counts(migrated=9, stays=stays, began=began, attempts=9)
    assert say(RUNNING, counts)[1].endswith("0 of 9 steps failed" + said)


def test_what_holds_a_migration_up_is_said_with_what_to_type() -> None:
    failed = Counts(active=8, replicating=1, migrated=1, attempts=40, errors=9)
    stopped = advance(RUNNING, (failed,), 0, NOW)
    assert say(stopped, failed)[2:] == [
        "paused by its gate: 9 of 40 steps failed; the gate allows 5.0%",
        "no write of 1 topic is taken until other regions lack no message of them",
        "Next: trimtab migration report m --cluster blue",
        "Next: trimtab migration resume m --cluster blue --execute",
    ]
    assert say(replace(RUNNING, unseen=2))[2:] == [
        "2 bundles with topics not named by a broker yet: it cannot be complete before that"
    ]
    apart = tuple(f"t/{number}" for number in range(6))
    assert say(replace(RUNNING, apart=apart))[2:] == [
        "left where they had migrated to before: t/0, t/1, t/2, t/3, t/4 and 1 more"
    ]
    assert say(replace(RUNNING, apart=apart[:1]))[2:] == [
        "left where they had migrated to before: t/0"
    ]
    assert say(replace(RUNNING, check=0.0))[2:] == [
        "migration.check is 0: no topic is looked at",
        "Next: trimtab config set migration.check=1 --cluster blue --execute",
    ]


def test_a_migration_that_stands_still_names_what_it_waits_for_and_what_to_type() -> None:
    bundle = "t/one/0x00000000_0xffffffff"
    told = {
        Cause.QUARANTINED: "is quarantined, as owner after owner died: none of its topics",
        Cause.NO_OWNER: "has no owner: none of its topics",
        Cause.NO_LEASE: "is of b:1, which is not alive: none of its topics",
        Cause.NOT_LOADED: "is given to b:1, which does not serve it yet: none of its topics",
        Cause.NOT_NAMED: "is served by b:1, which has not named its topics",
    }
    found = tuple(WaitingBundle(bundle, cause, "b:1") for cause in Cause)
    lines = say(replace(RUNNING, moved=1), bundles=found)[2:]
    for line, said in zip(lines, told.values(), strict=False):
        assert line.startswith(f"{bundle} {said}")
    assert lines[-2:] == [
        "it has come no further since 1970-01-01T00:00:00.001+00:00",
        f"Next: trimtab bundles readmit {bundle} --cluster blue --execute",
    ]


def test_topics_that_take_no_step_though_brokers_serve_them_are_said() -> None:
    """What they wait for is in no record: the user is told where to look."""
    waves = (Wave(("t/one",)),)
    it = replace(RUNNING, moved=1, waves=waves, counts=(Counts(active=2), Counts(active=9)))
    assert say(it)[-1].startswith(
        "2 topics of waves that have begun did not leave blue, though brok"
    )
    unserved = (WaitingBundle("t/one/0x00000000_0xffffffff", Cause.NO_OWNER),)
    for other, bundles in (
        (it, unserved),
        (replace(it, counts=(Counts(migrated=2), Counts(active=9))), ()),
        (it.after(MigrationEvent.ROLL_BACK), ()),
        (replace(it, moved=NOW - 1), ()),
    ):
        assert not any("did not leave blue" in line for line in say(other, bundles=bundles))


def test_who_has_paused_a_migration_is_not_told_that_it_stands_still() -> None:
    paused = replace(RUNNING, moved=1).after(MigrationEvent.PAUSE)
    assert not any("no further" in line for line in say(paused))
    assert not any("no further" in line for line in say(replace(RUNNING, moved=NOW - 1)))


@pytest.mark.parametrize(
    ("it", "said"),
    [
        (RUNNING, ""),
        (replace(RUNNING, why="a backlog of 9"), "the next wave waits: a backlog of 9"),
        (RUNNING.after(MigrationEvent.PAUSE), "paused by a person"),
        (RUNNING.after(MigrationEvent.PAUSE, why="a fair"), "paused by a person: a fair"),
        (RUNNING.after(MigrationEvent.ROLL_BACK, why="it is slow"), "rolled back: it is slow"),
    ],
)
def test_a_reason_says_whose_it_is(it: Migration, said: str) -> None:
    assert why(msgspec.to_builtins(it)) == said


def test_an_end_that_has_passed_is_not_told() -> None:
    it = advance(replace(RUNNING, at=0), (SOME,), 0, NOW)
    assert say(it, now_ms=NOW)[-1] == (
        "the last topic leaves at 1970-01-01T00:04:00.000+00:00 at this pace"
    )
    assert not any("the last topic" in line for line in say(it, now_ms=5 * NOW))


def waiting_row(**members: object) -> dict[str, Any]:
    """A topic of a report, as the API tells it."""
    nobody = {"subscription": "", "subscriptions": [], "regions": [], "more": 0}
    return {"topic": "persistent://t/one/x", "state": "draining", **nobody, **members}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (waiting_row(), ""),
        # As an agent of an earlier version writes it.
        (waiting_row(subscription="dead"), "dead"),
        (
            waiting_row(
                subscription="dead",
                subscriptions=[{"name": "dead", "messages": 9}, {"name": "slow", "messages": 1}],
                more=3,
            ),
            "dead (9), slow (1) and 3 more",
        ),
        (waiting_row(regions=[{"name": "west", "messages": 9}]), "region west (9)"),
    ],
)
def test_a_topic_says_who_has_still_to_get_messages_of_it(row: dict[str, Any], said: str) -> None:
    assert waits_for(row) == said
    assert waiting([row]) == [f"persistent://t/one/x waits for {said}"] * bool(said)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, ""),
        ({"gone": "http://teal:8080"}, "it has gone on from green to http://teal:8080"),
        ({"lost": True}, "blue has lost it, so green keeps it"),
        ({"gone": "http://teal:8080", "problem": "no answer"}, "no answer"),
    ],
)
def test_a_report_says_of_each_topic_that_stays_why_and_where(
    members: dict[str, Any], said: str
) -> None:
    record = TopicRecord(state=TopicState.MIGRATED, migration="m", stays=True, **members)

    class Topics:
        def of_namespace(self, *_: str) -> Iterator[tuple[str, TopicRecord]]:
            yield "persistent://t/one/x", record

    [row] = report(tell(RUNNING, Counted(SOME), NOW), Topics(), 5).stays
    assert row.problem.startswith(said)
    assert bool(row.problem) == bool(said)


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    """With one migration, of which some topics are counted."""
    answers = {"clusters": ["green"], "brokers/green": ["g:8080"]}
    with run_prompt_job(kafka, redis_server) as it, green(answers) as url:
        target = {"serviceUrl": url, "brokerServiceUrl": "pulsar://green:6650"}
        asked = {"id": "m", "cluster": it.cluster_name, "kind": IntentKind.MIGRATION_START}
        it.send(msgspec.convert({**asked, "scope": "t/one", "target": target}, Intent))
        counted = migrated_key(it.cluster_name, "m")
        it._redis.hset(counted, mapping={"t/one active": 1, "t/one migrated": 2})
        yield it


def run(job: PromptJob, kafka: KafkaServer, redis: RedisServer, *words: str) -> Result:
    environment = {"TRIMTAB_KAFKA__BOOTSTRAP": kafka.bootstrap, "TRIMTAB_REDIS_URL": redis.url}
    arguments = ["migration", *words, "--cluster", job.cluster_name]
    return CliRunner(env=environment).invoke(cli.build_app(), arguments)


def test_status_and_report_show_each_namespace_and_each_topic_that_fails(
    job: PromptJob, kafka: KafkaServer, redis_server: RedisServer
) -> None:
    listed = run(job, kafka, redis_server, "status")
    assert listed.stdout.splitlines()[1].split()[:6] == ["m", "t/one", "running", "1", "of", "1"]
    one = run(job, kafka, redis_server, "status", "m")
    assert one.stdout.splitlines()[1].split()[:2] == ["t/one", "1"]
    assert "2 of 3 topics on green" in one.stderr
    assert "leaves no topic on green" in run(job, kafka, redis_server, "report", "m").stdout
    for name in ("one", "two"):
        record = TopicRecord(state=TopicState.ACTIVE, migration="m", problem="green answers 403")
        key = topics_key(job.cluster_name, "t/one")
        job._redis.hset(key, f"persistent://t/one/{name}", msgspec.json.encode(record))
    for name, began in (("new", True), ("old", False)):
        record = TopicRecord(state=TopicState.MIGRATED, migration="m", stays=True, began=began)
        job._redis.hset(key, f"persistent://t/one/{name}", msgspec.json.encode(record))
    draining = TopicRecord(state=TopicState.DRAINING, migration="m", backlog=7, subscription="dead")
    held = TopicRecord(state=TopicState.REPLICATING, migration="m", regions=(Waiting("west", 9),))
    job._redis.hset(key, "persistent://t/one/unread", msgspec.json.encode(draining))
    job._redis.hset(key, "persistent://t/one/held", msgspec.json.encode(held))
    whole = run(job, kafka, redis_server, "report", "m").stdout.splitlines()
    kinds = [line.split()[0] for line in whole[1:]]
    assert kinds == ["stays", "began", *["failing"] * 2, *["waits"] * 4]
    # What holds it up most of all comes first.
    assert whole[5].split()[1:] == [
        "persistent://t/one/held",
        "replicating",
        "0",
        "region",
        "west",
        "(9)",
    ]
    assert whole[6].split()[1:] == ["persistent://t/one/unread", "draining", "7", "dead"]
    assert run(job, kafka, redis_server, "status", "m").stderr.splitlines()[-2:] == [
        "persistent://t/one/held waits for region west (9)",
        "persistent://t/one/unread waits for dead",
    ]
    for name in ("new", "old", "unread", "held"):
        job._redis.hdel(key, f"persistent://t/one/{name}")
    report = run(job, kafka, redis_server, "report", "m", "--limit", "1")
    assert report.stdout.splitlines()[1].split()[:3] == [
        "failing",
        "persistent://t/one/one",
        "active",
    ]
    assert "there are more topics: --limit" in report.stderr
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--wave", "t/two@nan", "--wave t/two@nan: what stands after @ must be a number"),
        ("--wave", "t/two@inf", "--wave t/two@inf: what stands after @ must be a number"),
        ("--wave", "t/two@x", "--wave t/two@x: what stands after @ must be a number"),
        ("--errors", "nan", "less than or equal to 1"),
    ],
)
def test_what_is_no_number_is_refused(option: str, value: str, said: str) -> None:
    words = ["migration", "plan", "--scope", "t/two", option, value, "--cluster", "blue"]
    refused = CliRunner().invoke(cli.build_app(), words)
    assert refused.exit_code == 2
    assert said in " ".join(refused.stderr.replace("│", " ").split())


def test_a_refusal_says_where_to_look_next(
    job: PromptJob, kafka: KafkaServer, redis_server: RedisServer
) -> None:
    missing = run(job, kafka, redis_server, "status", "n")
    assert missing.exit_code == 7
    assert f"Next: trimtab migration status --cluster {job.cluster_name}" in missing.stderr
    nowhere = run(job, kafka, redis_server, "plan", "--scope", "t/two")
    assert nowhere.exit_code == 8
    assert "Next: trimtab migration plan --help" in nowhere.stderr


@pytest.mark.parametrize(
    ("said", "scopes", "share"),
    [
        ("t/a@0.05", ["t/a"], 0.05),
        ("t/a,persistent://t/b/x", ["t/a", "persistent://t/b/x"], 1.0),
        ("persistent://t/a/user@example", ["persistent://t/a/user@example"], 1.0),
        ("persistent://t/a/mail@5@1", ["persistent://t/a/mail@5"], 1.0),
        ("persistent://t/a/x,y,t/b@0.5", ["persistent://t/a/x,y", "t/b"], 0.5),
    ],
)
def test_a_wave_names_any_topic(said: str, scopes: list[str], share: float) -> None:
    assert migration._wave(said) == {"scopes": scopes, "share": share}


def test_a_report_says_how_many_records_are_lost_before_it_says_that_all_is_well() -> None:
    class Topics:
        def of_namespace(self, *_: str) -> Iterator[tuple[str, TopicRecord]]:
            return iter(())

    back = replace(
        RUNNING, state=MigrationState.ROLLING_BACK, counts=(Counts(migrated=3),), why="an error"
    )
    assert report(tell(back, Counted(Counts()), NOW), Topics(), 5).lost == 0
    after = advance(back, (Counts(migrated=1, stays=1),), 0, NOW)
    told = tell(after, Counted(Counts()), NOW)
    lost = report(told, Topics(), 5).lost
    assert lost == told.lost == 2
    assert why(msgspec.to_builtins(after), lost).startswith("the store has lost the records of 2")
    assert migration._say_well(lost) == (
        "the records of 2 topics or more are lost: nothing is known of those"
    )
    assert migration._say_well(0).startswith("a rollback leaves no topic on green")


def test_a_migration_that_found_nothing_says_so() -> None:
    it = replace(RUNNING, state=MigrationState.COMPLETED, ended=NOW)
    found = "no broker has named a topic of its scope: nothing has gone"
    assert found in say(it, Counts())
    assert found not in say(it, Counts(migrated=1))
