"""`trimtab status` says whether a cluster is well, and what to type next if it is not."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import msgspec
import pytest
from typer.testing import CliRunner

from admin import cli
from admin.commands.clusters import list_findings
from admin.output import Output, Shown, show
from api.trimtab.clusters import tell_status
from control.health import Grade, assess, headline, status_of
from control.rounds import ClusterRounds, RoundFeed
from deploy.kafka_server import KafkaServer
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from tests.support.kept_topics import KeptTopics
from tests.support.migrations import RUNNING
from tests.support.plans import plan_for
from tests.support.recorded_batches import START
from tests.support.recorded_batches import held as round_record
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.kept_plans.life import PlanEvent
from trimtab.migration.life import MigrationEvent
from trimtab.migration.migration import Counts, Migration
from trimtab.migration.progress import advance
from trimtab.reasons import Rule
from trimtab.wire.keys import ROUNDS
from trimtab.wire.planned import HeldChanges
from trimtab.wire.rounds import BatchRecord, BusyTopicRecord, RoundRecord

SUMMARY = {
    "brokers": 3.0,
    "bundles": 12.0,
    "usage_min": 0.3,
    "usage_max": 0.4,
    "usage_mean": 0.35,
    "usage_range": 0.1,
}
USAGE = {"a:1": 0.4, "b:1": 0.3, "c:1": 0.35}


BUSY = BusyTopicRecord(bundle="B", broker="a", topics=1, rate=1, throughput=1)


def held(cluster: str = "east", /, **members: object) -> RoundRecord:
    calm = {"skipped": "balanced", "summary": SUMMARY, "usage": USAGE, "moves": (), "problems": ()}
    record = msgspec.structs.replace(round_record(cluster), at=START)
    return msgspec.structs.replace(record, **{**calm, **members})


def findings(record: RoundRecord, now_ms: int = START) -> list[tuple[str, str, str]]:
    found = assess(ClusterRounds("q", record, record), now_ms)
    return [(each.grade.value, each.what, each.next) for each in found]


def test_a_balanced_cluster_is_well() -> None:
    record = held()
    assert findings(record) == []
    assert headline(ClusterRounds("q", record, record)) == (
        f"3 brokers, 12 bundles, usage 30.0 % to 40.0 %, range 10.0 points, round {record.round}: "
        "balanced"
    )


@pytest.mark.parametrize(
    ("members", "grade", "says", "next_"),
    [
        ({"unserved": 2}, "act", "2 bundles without a broker", "trimtab bundles list --unserved"),
        (
            {"unserved": 2, "quarantined": 2},
            "act",
            "2 bundles quarantined: owner after owner died",
            "trimtab bundles list --state Quarantined --cluster east",
        ),
        ({"causes": {"clock": "unstable"}}, "act", "unstable because of clock", "trimtab doctor"),
        ({"causes": {"losses": "jittery"}}, "look", "because of losses", "trimtab brokers list"),
        ({"skipped": "paused"}, "look", "paused", "trimtab resume --cluster east"),
        ({"skipped": "disabled"}, "look", "off", "trimtab config set round.en"),
        ({"skipped": "too-few-brokers"}, "act", "fewer than two brokers", "trimtab brokers list"),
        ({"skipped": "uncomputable-view"}, "act", "cannot be computed", "trimtab why a:1 --cl"),
        ({"skipped": "no-proposal"}, "look", "10.0 points apart", "trimtab why a:1 --cluster east"),
        ({"frozen_until": START + 60_000}, "look", "for 60 s more", "trimtab resume --cluster e"),
        ({"observe_only": True}, "look", "only observes", "trimtab config set round.obs"),
        ({"held": HeldChanges(changes=3)}, "look", "3 changes wait", "trimtab windows show --c"),
        ({"gone": ("a:1", "b:1")}, "look", "lost: a:1, b:1", ""),
        ({"held_back": ("a:1",)}, "look", "held back: a:1", ""),
        ({"draining": ("a:1",)}, "look", "drained: a:1", "trimtab brokers undrain a:1"),
        (
            {"usage": USAGE | {"a:1": 0.9}},
            "act",
            "above 85.0 %: a:1; a:1 at 90.0 %",
            "trimtab brokers describe a:1 --cluster east",
        ),
        ({"problems": ("t/n: a hole",)}, "look", "t/n: a hole", ""),
        (
            {"busy_topics": (BUSY,)},
            "look",
            "B: one topic",
            "",
        ),
    ],
)  # fmt: skip
def test_each_trouble_has_its_grade_and_its_next_command(
    members: dict[str, object], grade: str, says: str, next_: str
) -> None:
    [(found, what, command)] = findings(held(**members))
    assert (found, says in what, command.startswith(next_)) == (grade, True, True)
    assert bool(command) is bool(next_)


@pytest.mark.parametrize("name", ["x;reboot", "$(reboot)", "*?[a]", "`a`", "it's"])
def test_a_command_to_copy_runs_no_name_that_a_reporter_chose(name: str) -> None:
    """Who may send reports chooses the names of clusters and brokers, of any printable ASCII."""
    for members in ({"skipped": "too-few-brokers"}, {"draining": (name,)}, {"usage": {name: 0.9}}):
        for _, _, typed in findings(held(name, **members)):
            words = shlex.split(typed)
            assert words[0] == "trimtab"
            assert name in words
            assert shlex.join(words) == typed


def test_the_urgent_comes_first_and_long_lists_are_counted() -> None:
    many = {"gone": tuple(f"b{i}:1" for i in range(7)), "unserved": 1}
    (first, *_), (_, what, _) = findings(held(**many))
    assert first == "act"
    assert "b4:1 and 2 more" in what
    told = findings(held(problems=tuple(map(str, range(9)))))
    assert [what for _, what, _ in told][-1] == "and 4 more problems"


def test_a_cluster_without_rounds_for_three_intervals_needs_a_person() -> None:
    assert findings(held(), START + 180_000) == []
    [(grade, what, command)] = findings(held(), START + 181_000)
    assert (grade, command) == ("act", "trimtab doctor")
    assert "no round for 3 min, though one is due every 60 s" in what


def recorded(*rounds: RoundRecord) -> KeptTopics:
    topics = KeptTopics()
    for number, record in enumerate(rounds):
        topics.publish([Outgoing(ROUNDS, f"q/{number}", written(number, record))], record.at)
    return topics


def written(
    number: int,
    record: RoundRecord,
    plans: tuple[KeptPlan, ...] = (),
    migrations: tuple[Migration, ...] = (),
) -> bytes:
    return msgspec.json.encode(
        BatchRecord(
            query="q",
            batch=number,
            generation=1,
            at=record.at,
            offsets={},
            rounds=(record,),
            plans=plans,
            migrations=migrations,
        )
    )


def test_a_round_between_two_others_hides_no_verdict_of_the_last_regular_one() -> None:
    paused = held(skipped="paused")
    extra = held(skipped=Rule.REPAIR_ONLY, unserved=1, at=START + 1000)
    found = RoundFeed(recorded(paused, extra)).refresh()["east"]
    assert (found.newest, found.regular) == (extra, paused)
    assert [grade for grade, _, _ in findings(extra)] == ["act"]
    said = assess(found, START)
    # The pause keeps the bundle from a broker.
    assert [each.grade for each in said] == [Grade.ACT, Grade.ACT]


@pytest.mark.parametrize(
    "harm", [{"unserved": 1}, {"gone": ("a:1",)}, {"usage": USAGE | {"a:1": 0.9}}]
)
def test_a_forgotten_pause_comes_before_what_it_harms(harm: dict[str, object]) -> None:
    commands = [command for grade, _, command in findings(held(skipped="paused", **harm))]
    assert commands[0].endswith(("resume --cluster east --execute", "--unserved --cluster east"))
    assert [
        grade for grade, what, _ in findings(held(skipped="paused", **harm)) if "paused" in what
    ] == ["act"]


def test_a_waiting_plan_is_named_until_a_person_has_decided() -> None:
    waits = plan_for("east", "drain-1")
    rejected = waits.after(PlanEvent.REJECT, by="ann")
    topics = KeptTopics()
    for number, plans in enumerate([(), (waits,), (rejected,)]):
        topics.publish([Outgoing(ROUNDS, f"q/{number}", written(number, held(), plans))], START)
        found = assess(RoundFeed(topics).refresh()["east"], START)
        told = [(each.what.endswith("reject: drain-1"), each.next) for each in found]
        show = (True, "trimtab plans show drain-1 --cluster east")
        assert told == ([show] if waits in plans else [])


def test_a_migration_is_named_while_it_is_under_way_with_who_has_paused_it() -> None:
    begun = replace(RUNNING, cluster="east")
    stopped = advance(begun, (Counts(active=3, migrated=1, attempts=40, errors=9),), 0, START)
    ended = stopped.after(MigrationEvent.FINISH, stopped=False)
    paused = begun.after(MigrationEvent.PAUSE)
    topics, said = KeptTopics(), []
    for number, it in enumerate((begun, paused, stopped, ended)):
        value = written(number, held(), migrations=(it,))
        topics.publish([Outgoing(ROUNDS, f"q/{number}", value)], START)
        found = assess(RoundFeed(topics).refresh()["east"], START)
        said.append([(each.grade.value, each.what, each.next) for each in found])
    status = "trimtab migration status m --cluster east"
    why = "paused by its gate: 9 of 40 steps failed; the gate allows 5.0%"
    report = "trimtab migration report m --cluster east"
    assert said == [
        [("look", "the migration m is running, 0 of 0 topics on green", status)],
        [("look", "the migration m is paused by a person, 0 of 0 topics on green", status)],
        [("act", f"the migration m is {why}", report)],
        [],
    ]


def test_where_nothing_is_recorded_nothing_is_found() -> None:
    assert RoundFeed(KeptTopics()).refresh() == {}


def test_it_is_printed_so_that_a_command_can_be_copied(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    record = held(skipped="paused", problems=("[red]odd[/] " + "x" * 60,))
    states = [tell_status(status_of(ClusterRounds("q", record, record), START))]
    show(Shown(states, lines=[*list_findings(states)]), Output.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("look  east: 3 brokers")
    assert "        Next: trimtab resume --cluster east --execute" in lines
    assert lines[-1] == f"  look  [red]odd[/] {'x' * 60}"


def test_the_command_ends_by_what_it_finds(
    kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    done = BatchRecord(
        query="status",
        batch=1,
        generation=1,
        at=START,
        offsets={},
        rounds=(held("status-well", at=2**42), held("status-ill", at=2**42, unserved=1)),
    )
    Publisher(kafka.bootstrap).publish(list(batch_records(done)))
    well = CliRunner().invoke(cli.build_app(["status"]), ["status", "status-well"])
    assert (well.exit_code, well.stdout.split()[0]) == (0, "well"), well.output
    ill = CliRunner().invoke(cli.build_app(["status"]), ["status", "status-ill", "-o", "json"])
    assert ill.exit_code == 6
    [told] = json.loads(ill.stdout)
    assert (told["cluster"], told["grade"], len(told["findings"])) == ("status-ill", "act", 1)
    absent = CliRunner().invoke(cli.build_app(["status"]), ["status", "status-il"])
    assert (absent.exit_code, "status-ill" in absent.stderr) == (7, True)
