"""The JSON Schema of each form on the wire (draft 2020-12), from its type.

A member that is not named in a schema is allowed and ignored: later versions add members.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from admin.wire import examples
from admin.wire.calls import Outcome, TopicSaid
from sinks.kafka.generation import ClaimRecord
from sinks.redis.transition_call import ScriptCall, ScriptRequest
from trimtab.migration.migration import Counts, Gate, Migration, Target, Wave
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, Division
from trimtab.wire.explanation import Explanation
from trimtab.wire.hints import Hints
from trimtab.wire.intent import Intent
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.lookup import Answer
from trimtab.wire.ownership import Change, Record
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource
from trimtab.wire.rounds import BatchRecord
from trimtab.wire.rows import DeadLetter
from trimtab.wire.topics import Named, TopicCall, TopicChange, TopicRecord

FOLDER: Final = Path("trimtab/wire/schemas")

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class Form(NamedTuple):
    """A form on the wire: its type, types of its own that it contains, and examples."""

    type: Any
    examples: tuple[Any, ...] = ()
    parts: tuple[Any, ...] = ()


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "load-report": Form(LocalBrokerData, (examples.REPORT,), (Resource, BundleStats)),
        "command": Form(Command, tuple(examples.COMMANDS.values()), (Division,)),
        "record": Form(Record, (examples.OWNED, examples.RELEASING)),
        "change": Form(Change, (examples.CHANGE,)),
        "assertion": Form(Assertion, (examples.ASSERTION,)),
        "call": Form(ScriptCall),
        "request": Form(ScriptRequest),
        "outcome": Form(Outcome),
        "migration": Form(Migration, (examples.MIGRATION,), (Target, Wave, Gate, Counts)),
        "topic-record": Form(TopicRecord, (examples.TOPIC,)),
        "topic-call": Form(TopicCall, (examples.TOPIC_CALL,), (TopicChange, Named)),
        "topic-outcome": Form(TopicSaid),
        "hints": Form(Hints, (examples.HINTS,)),
        "answer": Form(Answer, examples.ANSWERS),
        "intent": Form(Intent, examples.INTENTS),
        "intent-outcome": Form(IntentOutcome, examples.INTENT_OUTCOMES),
        "explanation": Form(Explanation, (examples.EXPLANATION,)),
        "dead-letter": Form(DeadLetter, (examples.DEAD_LETTER,)),
        "claim": Form(ClaimRecord),
        "batch": Form(BatchRecord),
    }
)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a form, by the form's name."""
    found = msgspec.json.schema(FORMS[name].type)
    return {"$schema": DIALECT, "$id": f"trimtab/{name}", **found}


def schema_text(name: str) -> str:
    """The schema's file, as it is shipped."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=2).decode() + "\n"


def write_schemas(folder: Path = FOLDER) -> None:
    """Write every schema's file."""
    folder.mkdir(exist_ok=True)
    for name in FORMS:
        (folder / f"{name}.json").write_text(schema_text(name), "utf-8")
