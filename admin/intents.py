"""An operator's intents for the job, which `trimtab tell` puts on trimtab.control."""

from __future__ import annotations

import getpass
import time
from enum import StrEnum
from uuid import uuid4

import msgspec

from sinks.kafka.publisher import Outgoing, Publisher
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.keys import CONTROL


class Word(StrEnum):
    """The intents that need only a word and a subject."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    READMIT = "readmit"


_SUBJECTS = {Word.DRAIN: "broker", Word.UNDRAIN: "broker", Word.READMIT: "bundle"}


def intent_of(word: Word, cluster: str, subject: str | None) -> Intent:
    """Make an intent; raises ValueError if the subject is missing, or not expected."""
    member = _SUBJECTS.get(word)
    if member is not None and subject is None:
        raise ValueError(f"{word}: say which {member}")
    if member is None and subject is not None:
        raise ValueError(f"{word} is about the whole cluster, not about {subject}")
    intent = Intent(
        id=f"tell/{uuid4()}",
        kind=IntentKind(word.value),
        cluster=cluster,
        at=time.time_ns() // 1_000_000,
        by=getpass.getuser(),
    )
    return intent if member is None else msgspec.structs.replace(intent, **{member: subject})


def publish(publisher: Publisher, intent: Intent) -> None:
    """Return once Kafka has it; raises KafkaUnavailable and Misconfigured."""
    publisher.publish([Outgoing(CONTROL, intent.cluster, msgspec.json.encode(intent))])
