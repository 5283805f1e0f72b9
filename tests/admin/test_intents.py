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
from trimtab.cluster.intents import apply_intent
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.keys import CONTROL

BUNDLE = "t/n/0x00000000_0xffffffff"


@pytest.fixture
def served(kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> KafkaServer:
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    return kafka


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli.app, [*words, "--cluster", "told", "--unchecked"])


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
    done = CliRunner().invoke(cli.app, words)
    assert (done.exit_code, says in done.stderr) == (USAGE, True), done.output
