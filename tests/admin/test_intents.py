"""What an operator types arrives as an intent that the job understands."""

from __future__ import annotations

import msgspec
import pytest
from typer.testing import CliRunner, Result

from admin import cli
from admin.exit_codes import OK, USAGE
from deploy.kafka_server import KafkaServer
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.topics import ensure_topics
from trimtab.cluster.intents.apply import apply_intent
from trimtab.controls import Mode
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import CONTROL

BUNDLE = "t/n/0x00000000_0xffffffff"


@pytest.fixture
def served(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> KafkaServer:
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    return kafka


def typed(*words: str) -> Result:
    return CliRunner().invoke(
        cli.build_app(words[:1]), [*words, "--cluster", "told", "--unchecked"]
    )


def sent(kafka: KafkaServer) -> dict[str, Intent]:
    """The intents on Kafka, by id."""
    topics = RecordedTopics(kafka.bootstrap)
    values = [each.value or b"" for each in topics.all(CONTROL) if each.key == b"told"]
    topics.close()
    return {each.id: each for each in (msgspec.json.decode(v, type=Intent) for v in values)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pause", Intent(id="", kind=IntentKind.PAUSE, cluster="told")),
        ("resume --execute", Intent(id="", kind=IntentKind.RESUME, cluster="told")),
        (
            "brokers drain a:1 --execute --reason disk",
            Intent(id="", kind=IntentKind.DRAIN, cluster="told", broker="a:1", reason="disk"),
        ),
        (
            "brokers undrain a:1 --execute",
            Intent(id="", kind=IntentKind.UNDRAIN, cluster="told", broker="a:1"),
        ),
        (
            f"bundles readmit {BUNDLE} --execute",
            Intent(id="", kind=IntentKind.READMIT, cluster="told", bundle=BUNDLE),
        ),
        (
            f"bundles transfer {BUNDLE} a:1 --execute",
            Intent(id="", kind=IntentKind.UNLOAD, cluster="told", bundle=BUNDLE, broker="a:1"),
        ),
        (
            "namespaces unload t/n --execute",
            Intent(id="", kind=IntentKind.UNLOAD, cluster="told", name="t/n"),
        ),
        (
            f"bundles split {BUNDLE} --at 0x33000000 --at 5 --execute",
            Intent(
                id="",
                kind=IntentKind.SPLIT,
                cluster="told",
                bundle=BUNDLE,
                positions=(0x33000000, 5),
            ),
        ),
        (
            "plans drain a:1 b:1 --execute",
            Intent(id="", kind=IntentKind.DRAIN_PLAN, cluster="told", brokers=("a:1", "b:1")),
        ),
        (
            "plans restart a:1 --execute",
            Intent(id="", kind=IntentKind.RESTART_PLAN, cluster="told", brokers=("a:1",)),
        ),
        (
            "modes set approve --namespace t/n --execute",
            Intent(id="", kind=IntentKind.MODE, cluster="told", name="t/n", mode=Mode.APPROVE),
        ),
        (
            "modes set observe --execute",
            Intent(
                id="",
                kind=IntentKind.SETTINGS,
                cluster="told",
                settings={"round.observe_only": True},
            ),
        ),
        (
            "budgets set t 3 --execute",
            Intent(id="", kind=IntentKind.BUDGET, cluster="told", name="t", limit=3),
        ),
        (
            "budgets reset t --execute",
            Intent(id="", kind=IntentKind.BUDGET, cluster="told", name="t"),
        ),
    ],
)
def test_each_verb_is_an_intent_without_a_flaw(
    served: KafkaServer, words: str, expected: Intent
) -> None:
    done = typed(*words.split())
    assert done.exit_code == OK, done.output
    intent = sent(served)[done.stdout.strip()]
    assert msgspec.structs.replace(intent, id="", at=0, by="") == expected
    assert intent.by
    assert apply_intent(Memory(), intent, Settings(), 1, 1).refused is None


@pytest.mark.parametrize("verb", ["approve", "reject", "cancel", "undo"])
def test_each_verb_of_plans_is_an_intent(served: KafkaServer, verb: str) -> None:
    done = typed("plans", verb, "128-3fa9", "--execute", "--reason", "läuft →\nrichtig")
    assert done.exit_code == OK, done.output
    intent = sent(served)[done.stdout.strip()]
    assert (intent.kind, intent.plan, intent.reason) == (verb, "128-3fa9", "läuft → richtig")


def test_a_pin_lasts_as_long_as_it_is_said(served: KafkaServer) -> None:
    done = typed("pins", "set", BUNDLE, "--for", "2h", "--broker", "a:1", "--execute")
    assert done.exit_code == OK, done.output
    intent = sent(served)[done.stdout.strip()]
    assert (intent.kind, intent.bundle, intent.broker) == (IntentKind.PIN, BUNDLE, "a:1")
    assert abs(intent.until - intent.at - 7_200_000) < 10_000


@pytest.mark.parametrize(
    "words", ["pins set t/n --for 2hours --execute", "pins set t/n --broker a:1 --execute"]
)
def test_a_pin_that_cannot_be_is_wrong_usage(served: KafkaServer, words: str) -> None:
    before = sent(served)
    assert typed(*words.split()).exit_code == USAGE
    assert sent(served) == before


def test_without_execute_nothing_is_sent(served: KafkaServer) -> None:
    before = sent(served)
    done = typed("brokers", "drain", "a:1")
    assert (done.exit_code, done.stdout) == (OK, "would empty a:1, and give it no bundle\n")
    assert "nothing is changed yet" in done.stderr
    assert sent(served) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bundles", "split", BUNDLE, "--at", "half"), "--at half: must be a number"),
        (("bundles", "unload", "t/n"), "t/n: must be a bundle"),
        (("topics", "lookup", "t/n"), "t/n: must be persistent://"),
    ],
)
def test_what_is_no_name_is_not_asked_for(words: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(cli.build_app(words[:1]), words)
    assert (done.exit_code, says in done.stderr) == (USAGE, True), done.output
