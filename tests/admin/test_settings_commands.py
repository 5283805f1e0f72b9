"""`trimtab config` and `trimtab policies`: what is shown, sent, and refused before it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from admin import cli
from control.intents import new_intent, note, object_to
from control.rounds import ClusterRounds, NoSuchCluster, RoundFeed, find_cluster
from control.settings import explain_settings, parse_value
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.replay.recorded import RecordedTopics
from sinks.errors import StoreUnavailable
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_batches import START
from tests.support.recorded_batches import held as round_record
from trimtab.cluster.intents.existing import Existing
from trimtab.cluster.job_settings import to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.policies import NO_POLICIES, Isolation, Policies
from trimtab.settings import Value
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import CONTROL, ROUNDS
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import BatchRecord, RoundRecord

STARTED = to_record(
    IntakeSettings(half_life=5.0), DEFAULTS.changed({"round.max_moves": 7, "round.silence": 30.0})
)
BUNDLE = "t/n/0x00000000_0xffffffff"
NUMBERS = count()


def last(
    overrides: Mapping[str, Value] | None = None, *brokers: str, **members: object
) -> ClusterRounds:
    calm = {"usage": {}, "draining": (), "held_back": (), "overrides": overrides or {}}
    record = msgspec.structs.replace(round_record("east"), **{**calm, **members})
    return ClusterRounds("q", record, record, frozenset(brokers), STARTED)


def batch(*rounds: RoundRecord, started: bool = False, query: str = "q") -> BatchRecord:
    return BatchRecord(
        query=query,
        batch=next(NUMBERS),
        generation=1,
        at=START,
        offsets={},
        rounds=rounds,
        settings=STARTED if started else None,
    )


def held(cluster: str, **members: object) -> RoundRecord:
    return msgspec.structs.replace(round_record(cluster), **members)


def records(namespace: str) -> dict[str, Record]:
    if namespace != "t/n":
        return {}
    return {BUNDLE: Record(state=State.OWNED, epoch=Epoch(1, 1), owner="a:1")}


def existing(of: ClusterRounds) -> Existing:
    return Existing(lambda: of.brokers, lambda: ["t/n"], lambda name: records(name))


def remembered(of: ClusterRounds) -> Memory:
    policies = of.newest.policies or NO_POLICIES
    return Memory(overrides=dict(of.newest.overrides), policies=policies)


def found(intent: Intent, of: ClusterRounds) -> list[str]:
    return [problem for _, problem in object_to(intent, of, remembered(of), existing(of))]


def noted(intent: Intent, of: ClusterRounds) -> list[str]:
    return list(note(intent, of, remembered(of), existing(of)))


def test_what_no_job_has_recorded_hides_no_cluster() -> None:
    """One such record would stop every operator's command."""
    topics = KeptTopics()
    for value in (b"junk", msgspec.json.encode(batch(held("east"), started=True)), b"", b"[]"):
        topics.publish([Outgoing(ROUNDS, "q/1", value)], START)
    clusters = RoundFeed(topics).refresh()
    assert {name: each.started for name, each in clusters.items()} == {"east": STARTED}


def test_each_setting_is_shown_with_where_it_comes_from() -> None:
    shown, problems = explain_settings({"round.max_moves": 2, "round.interval": 5.0}, STARTED)
    by_name = {each.name: each for each in shown}
    assert problems == []
    assert by_name["round.max_moves"][1:] == (2, "intent", 7)
    assert by_name["round.interval"][1:] == (5.0, "intent", 60.0)
    assert by_name["round.silence"][1:] == (30.0, "file", 30.0)
    assert by_name["round.forget"].source == "default"
    assert by_name["intake.half_life"][1:] == (5.0, "file", 5.0)
    named = {*DEFAULTS.dumped(), *(f"intake.{name}" for name in STARTED.intake)}
    assert by_name.keys() == named | {"planner.aim"}


@pytest.mark.parametrize(
    ("target", "shown"),
    [(0.05, ("balanced", "default")), (0.15, ("calm", "intent")), (0.1, ("other", "intent"))],
)
def test_the_aim_is_shown_in_words(target: float, shown: tuple[str, str]) -> None:
    overrides = {} if target == 0.05 else {"planner.target": target}
    by_name = {each.name: each for each in explain_settings(overrides, STARTED)[0]}
    assert by_name["planner.aim"][1:] == (*shown, "balanced")


def test_changes_that_the_job_leaves_out_are_not_shown_as_in_force() -> None:
    shown, problems = explain_settings({"avg.low_threshold": 99.0}, STARTED)
    assert problems == [
        "changed settings are left out: avg.low_threshold: must not be above avg.high_threshold"
    ]
    assert {each.source for each in shown} == {"default", "file"}


def test_the_last_hour_says_which_brokers_and_settings_there_are() -> None:
    topics = KeptTopics()
    topics.publish(batch_records(batch(held("old", usage={"o:1": 0.1}), started=True)), START)
    now = START + 3 * 3_600_000
    for members in (
        {"usage": {"a:1": 0.1, "b:1": 0.2}},
        {"usage": {"a:1": 0.1}, "gone": ("c:1",), "overrides": {"round.max_moves": 1}},
    ):
        topics.publish(batch_records(batch(held("east", **members))), now)
    clusters = RoundFeed(topics).refresh()
    assert clusters.keys() == {"east"}
    assert clusters["east"].brokers == {"a:1", "b:1", "c:1"}
    assert clusters["east"].newest.overrides == {"round.max_moves": 1}
    assert clusters["east"].started == STARTED
    with pytest.raises(NoSuchCluster, match="did you mean east"):
        find_cluster(clusters, "eats")
    with pytest.raises(NoSuchCluster, match="start a job"):
        find_cluster({}, "east")


def test_no_recording_knows_no_cluster() -> None:
    assert RoundFeed(KeptTopics()).refresh() == {}


@pytest.mark.parametrize(
    ("kind", "members", "says"),
    [
        (
            IntentKind.SETTINGS,
            {"settings": {"round.sheding": "avg", "intake.half_life": 1.0, "round.max_moves": -1}},
            ["intake.half_life: is fixed", "round.sheding: no such", "round.max_moves: must be"],
        ),
        (
            IntentKind.SETTINGS,
            {"settings": {"round.shedding": "avg"}},
            ["round.placement: avg placement and avg shedding"],
        ),
        (
            IntentKind.SETTINGS,
            {"settings": {"loadBalancerDebugModeEnabled": True}},
            ["loadBalancerDebugModeEnabled: no such", "loadBalancerDebugModeEnabled: this key"],
        ),
        (IntentKind.RESET, {"names": ("round.no",)}, ["round.no: no such setting"]),
        (IntentKind.DRAIN, {"broker": "aa:1"}, ["broker: aa:1 is not known; did you mean a:1?"]),
        (IntentKind.READMIT, {"bundle": BUNDLE}, [f"bundle: {BUNDLE} is not quarantined"]),
        (
            IntentKind.READMIT,
            {"bundle": "t/m/0x0_0x1"},
            ["bundle: t/m/0x0_0x1 is not known; no bundle of t/m is; did you mean t/n?"],
        ),
        (
            IntentKind.ISOLATION,
            {"name": "p", "isolation": Isolation(namespaces=("(",), primary=("a",))},
            ["isolation.namespaces: "],
        ),
        (IntentKind.DRAIN, {"broker": "a:1"}, []),
        (IntentKind.SETTINGS, {"settings": {"loadBalancerSheddingIntervalMinutes": 1}}, []),
        (IntentKind.SPLIT, {"bundle": BUNDLE, "positions": (0x33000000,)}, []),
        (IntentKind.SPLIT, {"bundle": BUNDLE, "positions": (0,)}, ["positions: 0x00000000 does"]),
        (IntentKind.SPLIT, {"bundle": "t/n/0x00000000_0x40000000"}, ["bundle: "]),
    ],
)
def test_what_the_job_would_refuse_is_not_sent(
    kind: IntentKind, members: dict[str, object], says: list[str]
) -> None:
    problems = found(new_intent(kind, "east", **members), last({}, "a:1", "b:1"))
    assert [p.startswith(s) for p, s in zip(problems, says, strict=True)] == [True] * len(says)


POLICIES = Policies(
    isolation={"vip": Isolation(("t/vip",), ("a",))},
    groups={"t/n": "g"},
    domains={"a:1": "north"},
)


@pytest.mark.parametrize(
    ("kind", "members", "says"),
    [
        (IntentKind.ISOLATION, {"name": "vpi"}, "vpi has no isolation to delete; did you mean vip"),
        (IntentKind.ANTI_AFFINITY, {"name": "t/m"}, "t/m has no anti-affinity to delete; did you"),
        (IntentKind.FAILURE_DOMAIN, {"name": "nort"}, "nort has no failure-domain to delete; did"),
        (
            IntentKind.FAILURE_DOMAIN,
            {"name": "south", "brokers": ("b:1", "a:1")},
            "brokers: a:1 is in north; set north without it first",
        ),
    ],
)
def test_a_policy_that_the_job_would_refuse_is_not_sent(
    kind: IntentKind, members: dict[str, object], says: str
) -> None:
    intent = new_intent(kind, "east", **members)
    assert (
        found(intent, last({}, "a:1", "b:1")) == []
    )  # the round of an earlier version, which tells no policies
    (problem,) = found(intent, last({}, "a:1", "b:1", policies=POLICIES))
    assert says in problem


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (IntentKind.ISOLATION, "vip"),
        (IntentKind.ANTI_AFFINITY, "t/n"),
        (IntentKind.FAILURE_DOMAIN, "north"),
    ],
)
def test_a_policy_that_there_is_can_be_deleted(kind: IntentKind, name: str) -> None:
    seen = last({}, "a:1", policies=POLICIES)
    assert found(new_intent(kind, "east", name=name), seen) == []


def test_a_policy_about_no_namespace_is_noted() -> None:
    def noted_of(kind: IntentKind, **members: object) -> list[str]:
        return noted(new_intent(kind, "east", **members), last({}, "a:1"))

    assert noted_of(IntentKind.ANTI_AFFINITY, name="t/m", group="g") == [
        "note: t/m is no namespace that has bundles now; did you mean t/n?"
    ]
    assert noted_of(IntentKind.ANTI_AFFINITY, name="t/n", group="g") == []
    assert noted_of(IntentKind.ANTI_AFFINITY, name="t/m") == []
    policy = Isolation(namespaces=("x/.*",), primary=("a",))
    assert noted_of(IntentKind.ISOLATION, name="p", isolation=policy) == [
        "note: no namespace that has bundles now matches x/.*"
    ]


def test_a_note_that_needs_an_absent_redis_says_so() -> None:
    def absent() -> list[str]:
        raise StoreUnavailable("Redis does not answer")

    intent = new_intent(IntentKind.ANTI_AFFINITY, "east", name="t/m", group="g")
    seen = last({}, "a:1")
    known = replace(existing(seen), namespaces=absent)
    (told,) = note(intent, seen, remembered(seen), known)
    assert told.endswith("is unknown: Redis does not answer")


def test_a_drain_that_leaves_too_little_is_noted() -> None:
    usage = {"a:1": 0.5, "b:1": 0.5, "c:1": 0.1}
    intent = new_intent(IntentKind.DRAIN, "east", broker="b:1")
    (told,) = noted(intent, last({}, *usage, usage=usage, draining=("c:1",)))
    assert told.startswith("note: draining b:1, c:1: with all bundles the 1 broker left would be")
    assert noted(intent, last({}, *usage, usage=usage)) == []


@pytest.mark.parametrize("kind", [IntentKind.UNLOAD, IntentKind.DRAIN])
def test_what_is_asked_of_a_paused_cluster_says_what_it_waits_for(kind: IntentKind) -> None:
    intent = new_intent(kind, "east", broker="b:1")
    usage = {"a:1": 0.1, "b:1": 0.1, "c:1": 0.1}
    (told,) = noted(intent, last({}, *usage, usage=usage, skipped="paused"))
    assert told.endswith("until it is resumed: trimtab resume --cluster east --execute")
    assert noted(intent, last({}, *usage, usage=usage)) == []


def test_a_failure_domain_says_what_it_takes_to_have_an_effect() -> None:
    domain = new_intent(IntentKind.FAILURE_DOMAIN, "east", name="north", brokers=("a:1",))
    (told,) = noted(domain, last({}, "a:1"))
    assert "trimtab config set placement.failure_domains=true --cluster east" in told
    gone = new_intent(IntentKind.FAILURE_DOMAIN, "east", name="north", brokers=())
    assert noted(gone, last({}, "a:1")) == []


def test_a_policy_may_name_absent_brokers_and_says_which() -> None:
    domain = new_intent(IntentKind.FAILURE_DOMAIN, "east", name="north", brokers=("a:1", "aa:1"))
    seen = last({"placement.failure_domains": True}, "a:1")
    assert found(domain, seen) == []
    assert noted(domain, seen) == ["note: aa:1 is no broker lately; did you mean a:1?"]
    policy = Isolation(namespaces=("t/.*",), primary=("big-.*",))
    isolation = new_intent(IntentKind.ISOLATION, "east", name="p", isolation=policy)
    assert noted(isolation, seen) == ["note: no broker lately matches big-.*"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("3", 3), ("0.5", 0.5), ("avg", "avg"), ('"1"', "1"), ("[1]", "[1]")],
)
def test_values_are_typed_as_settings_are(text: str, value: Value) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


@pytest.fixture
def east(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> KafkaServer:
    """A Kafka with a round of cluster asked, which has the broker a:1."""
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    record = held(
        "asked",
        at=1_000_000,
        usage={"a:1": 0.1},
        overrides={"round.max_moves": 2},
        policies=NO_POLICIES,
    )
    recorded = batch(record, started=True, query="asked")
    Publisher(kafka.bootstrap).publish(list(batch_records(recorded)))
    return kafka


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli.build_app(words[:1]), [*words, "--cluster", "asked"])


def sent(kafka: KafkaServer, done: Result) -> Intent:
    """The intent whose id was printed."""
    assert done.exit_code == 0, done.output
    topics = RecordedTopics(kafka.bootstrap)
    values = [record.value or b"" for record in topics.all(CONTROL)]
    topics.close()
    intents = {each.id: each for each in (msgspec.json.decode(v, type=Intent) for v in values)}
    return intents[done.stdout.strip()]


def acted(kafka: KafkaServer, *words: str) -> Intent:
    return sent(kafka, typed(*words, "--execute"))


def test_settings_are_set_reset_and_shown(east: KafkaServer, tmp_path: Path) -> None:
    intent = acted(east, "config", "set", "round.interval=5", "round.silence=7.5")
    assert (intent.kind, intent.settings) == (
        IntentKind.SETTINGS,
        {"round.interval": 5, "round.silence": 7.5},
    )
    intent = acted(east, "config", "reset", "round.max_moves")
    assert (intent.kind, intent.names) == (IntentKind.RESET, ("round.max_moves",))
    assert acted(east, "config", "reset", "--all").names == ()
    shown = typed("config", "show", "--changed", "-o", "json")
    assert shown.exit_code == 0, shown.output
    assert [each["name"] for each in json.loads(shown.stdout)] == [
        "intake.half_life",
        "round.max_moves",
        "round.silence",
    ]
    assert "round.max_moves" in typed("config", "show").stdout
    file = tmp_path / "trimtab.toml"
    file.write_text("[settings.round]\nmax_moves = 3\nsilence = 30.0\n")
    differs = typed("config", "diff", str(file), "-o", "name")
    assert differs.stdout.split() == ["round.max_moves"], differs.output


def test_a_settings_file_is_validated(tmp_path: Path) -> None:
    file = tmp_path / "trimtab.toml"
    file.write_text("[settings.round]\nmax_moves = 3\n")
    assert (
        CliRunner().invoke(cli.build_app(["config"]), ["config", "validate", str(file)]).exit_code
        == 0
    )
    file.write_text("trigger_seconds = -1\n[settings.round]\nmax_moves = -3\n")
    wrong = CliRunner().invoke(cli.build_app(["config"]), ["config", "validate", str(file)])
    assert wrong.exit_code == 2
    assert all(part in wrong.stderr for part in ("trigger_seconds", "round.max_moves", "Next:"))


def test_a_namespace_is_created_with_bundles_of_equal_ranges(
    east: KafkaServer, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Item 002-05 of docs/pulsar-coverage.md."""
    monkeypatch.setenv("TRIMTAB_REDIS_URL", redis_server.url)
    created = acted(east, "namespaces", "create", "t/new", "--bundles", "16")
    assert (created.kind, created.name) == (IntentKind.NAMESPACE, "t/new")
    assert created.positions == tuple(i << 28 for i in range(1, 16))


def test_policies_are_sent_and_listed(east: KafkaServer) -> None:
    words = ("policies", "set-isolation", "vip", "--namespace", "t/vip.*", "--primary", "a")
    policy = acted(east, *words, "--min-available", "2").isolation
    assert policy == Isolation(namespaces=("t/vip.*",), primary=("a",), min_available=2)
    assert acted(east, "policies", "delete-isolation", "vip").isolation is None
    joined = acted(east, "policies", "set-anti-affinity", "t/n", "g")
    assert (joined.kind, joined.name, joined.group) == (IntentKind.ANTI_AFFINITY, "t/n", "g")
    domain = acted(east, "policies", "set-failure-domain", "north", "a:1")
    assert (domain.kind, domain.brokers) == (IntentKind.FAILURE_DOMAIN, ("a:1",))
    listed = typed("policies", "list", "-o", "name")
    assert listed.stdout.split() == ["g", "north"]
    taken = typed("policies", "set-failure-domain", "south", "a:1")
    assert (taken.exit_code, taken.stdout) == (8, "")
    assert "brokers: a:1 is in north; set north without it first" in taken.stderr
    gone = typed("policies", "delete-isolation", "vip")
    assert gone.exit_code == 7
    assert "vip has no isolation to delete; there is none" in gone.stderr


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("brokers", "drain", "aa:1"), 7, "did you mean a:1?"),
        (("brokers", "drain", "aa:1"), 7, "Next: trimtab brokers list --cluster asked"),
        (("config", "set", "round.max_moves=-1", "no.such=1"), 8, "no.such: no such setting"),
        (("config", "set", "round.max_moves"), 2, "must be NAME=VALUE"),
        (("config", "reset"), 2, "--all"),
        (("policies", "set-isolation", "vip", "--namespace", "t/.*"), 2, "--primary"),
    ],
)
def test_what_is_wrong_is_told_and_not_sent(words: tuple[str, ...], code: int, says: str) -> None:
    done = typed(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert says in done.stderr


@pytest.mark.usefixtures("east")
def test_a_bundle_without_a_record_is_not_readmitted(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_REDIS_URL", redis_server.url)
    done = typed("bundles", "readmit", BUNDLE)
    assert done.exit_code == 7
    assert f"bundle: {BUNDLE} is not known" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("pause --cluster askd", 7, "did you mean asked?"),
        ("config show --cluster askd", 7, "did you mean asked?"),
        ("bundles list --cluster askd", 7, "did you mean asked?"),
        ("namespaces list --cluster askd", 7, "did you mean asked?"),
        ("outcome drain-1 --cluster askd", 7, "did you mean asked?"),
        ("bundles list --cluster asked --broker a:11", 7, "did you mean a:1?"),
        ("bundles list --cluster asked --namespace t/n", 7, "t/n: no namespace"),
        ("bundles list --cluster asked", 0, "none"),
        ("namespaces list --cluster asked", 0, "none"),
        ("outcome drain-1 --cluster asked", 7, "drain-1: not read by a job yet"),
    ],
)
def test_an_empty_answer_says_whether_what_was_asked_for_exists(  # noqa: PLR0913 - an answer
    east: KafkaServer,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    code: int,
    says: str,
) -> None:
    del east
    monkeypatch.setenv("TRIMTAB_REDIS_URL", redis_server.url)
    done = CliRunner().invoke(cli.build_app(words.split()[:1]), words.split())
    assert (done.exit_code, says in done.stderr) == (code, True), done.output
