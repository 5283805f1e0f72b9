"""What an operator tells the job arrives as an intent that it understands."""

from __future__ import annotations

import msgspec
import pytest
from typer.testing import CliRunner

from admin import cli
from admin.commands.tell import Word, intent_of
from deploy.kafka_server import KafkaServer
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.topics import ensure_topics
from trimtab.cluster.intents import apply_intent
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.keys import CONTROL

BUNDLE = "t/n/0x00000000_0xffffffff"


@pytest.mark.parametrize(
    ("word", "subject"),
    [
        (Word.PAUSE, None),
        (Word.RESUME, None),
        (Word.DRAIN, "a:1"),
        (Word.UNDRAIN, "a:1"),
        (Word.READMIT, BUNDLE),
    ],
)
def test_every_word_is_an_intent_without_a_flaw(word: Word, subject: str | None) -> None:
    applied = apply_intent(Memory(), intent_of(word, "c", subject), Settings(), 1, 1)
    assert applied.refused is None


@pytest.mark.parametrize(
    ("word", "subject", "says"),
    [
        (Word.DRAIN, None, "say which broker"),
        (Word.READMIT, None, "say which bundle"),
        (Word.PAUSE, "a:1", "about the whole cluster"),
    ],
)
def test_a_word_about_nobody_or_too_many_is_refused(
    word: Word, subject: str | None, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        intent_of(word, "c", subject)


def test_what_is_told_reaches_the_jobs_topic(
    kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)

    done = CliRunner().invoke(cli.app, ["tell", "drain", "told", "a:1", "--unchecked"])

    assert done.exit_code == 0, done.output
    topics = RecordedTopics(kafka.bootstrap)
    (record,) = (each for each in topics.all(CONTROL) if each.key == b"told")
    topics.close()
    intent = msgspec.json.decode(record.value or b"", type=Intent)
    assert (intent.kind, intent.broker, intent.id) == (IntentKind.DRAIN, "a:1", done.stdout.strip())


def test_a_split_reaches_the_jobs_topic_with_its_positions(
    kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_topics(kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    args = ["split", "cut", BUNDLE, "--at", "0x33000000", "--at", "5", "--unchecked"]
    done = CliRunner().invoke(cli.app, args)
    assert done.exit_code == 0, done.output
    topics = RecordedTopics(kafka.bootstrap)
    (record,) = (each for each in topics.all(CONTROL) if each.key == b"cut")
    topics.close()
    intent = msgspec.json.decode(record.value or b"", type=Intent)
    assert (intent.kind, intent.bundle, intent.positions) == (
        IntentKind.SPLIT,
        BUNDLE,
        (0x33000000, 5),
    )


def test_a_position_that_is_no_number_is_not_sent() -> None:
    done = CliRunner().invoke(cli.app, ["split", "c", BUNDLE, "--at", "half"])
    assert (done.exit_code, "--at half: must be a number" in done.output) == (2, True)
