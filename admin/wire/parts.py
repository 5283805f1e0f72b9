"""The generated parts of docs/wire.md, each a function without arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from importlib.resources import as_file, files
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final

import msgspec

from admin.conformance.program import Told
from admin.conformance.rules import RULES
from admin.documents.tables import row
from admin.wire import examples
from admin.wire.calls import Call, lease_calls, transition_calls
from admin.wire.members import members, summary, words
from admin.wire.schemas import FORMS
from sinks.redis.command_streams import GROUP, KEPT_S
from sinks.redis.leasing.lease import Renewal
from sinks.redis.scripts import ASSERTION_KEPT_MS, BROKERS_SCRIPTS
from sinks.redis.server.address import TIMEOUT_SECONDS
from trimtab import ownership
from trimtab.migration import topic_life
from trimtab.migration.topic_life import TopicState
from trimtab.ownership import BROKER_EVENTS, TRANSITIONS, Given, State
from trimtab.wire import keys
from trimtab.wire.command import CommandKind
from trimtab.wire.intent import IntentKind
from trimtab.wire.lookup import RETRY_AFTER_MS, AnswerKind, Cause
from trimtab.wire.ownership import Refused
from trimtab.wire.topics import TopicRefused

_TOPICS: Final = (
    (keys.LOAD_REPORTS, "cluster/broker", "broker", "`load-report`"),
    (keys.COMMANDS, "cluster/broker", "job", "`command`"),
    (keys.OWNERSHIP, "cluster/bundle", "job", "`change`; a tombstone for a forgotten bundle"),
    (keys.CONTROL, "cluster", "operators, job", "`intent`"),
    (keys.ROUNDS, "query/batch", "job", "`batch`"),
    (keys.STATE, "query/batch/cluster", "job", "MessagePack, `trimtab/wire/state.py`"),
    (keys.DEAD_LETTERS, "topic/partition/offset", "job", "`dead-letter`"),
    (keys.GENERATIONS, "job", "job", "`claim`"),
)
_SAMPLES: Final = {
    "cluster": examples.CLUSTER,
    "broker": examples.BROKER,
    "number": 982,
    "history": examples.HISTORY,
    "intent": examples.INTENTS[0].id,
    "plan": "128-3fa9",
    "namespace": "public/orders",
    "migration": "move-1",
}
_GIVEN: Final = {
    Given.NOTHING: "",
    Given.OWNER_GONE: "the owner's lease is gone",
    Given.OWNER_GONE_OR_JOB: "the owner's lease is gone",
}


def topics() -> Iterator[str]:
    yield from _table(("topic", "key", "written by", "value"))
    for name, key, writer, value in _TOPICS:
        yield row(f"`{name}`", key, writer, value)


def redis_keys() -> Iterator[str]:
    yield from _table(("key", "content"))
    for name, function in inspect.getmembers(keys, inspect.isfunction):
        if function.__module__ == keys.__name__ and name.endswith(("_key", "_stream")):
            taken = inspect.signature(function).parameters
            key = function(**{each: _SAMPLES[each] for each in taken})
            yield row(f"`{key}`", summary(function))


def numbers() -> Iterator[str]:
    shown = {
        "longest lease": f"{ownership.LONGEST_LEASE_MS} ms",
        "timeout of a call to Redis": f"{1000 * TIMEOUT_SECONDS:.0f} ms",
        "accepted difference between two clocks": f"{ownership.CLOCK_MARGIN_MS} ms",
        "time within which a replica must have acknowledged": f"{ownership.REPLICA_LAG_S} s",
        "an owner's death counts against bundles it got in the last": f"{ownership.SOON_MS} ms",
        "number of such deaths in a row that quarantine the bundle": str(ownership.MOST_FALLS),
        "an assertion is stored for": f"{ASSERTION_KEPT_MS} ms",
        "a command stream is stored after its last command for": f"{KEPT_S} s",
        "consumer group of a command stream": f"`{GROUP}`",
        "headers of a load report": f"`{keys.SESSION_HEADER}`, `{keys.SEQUENCE_HEADER}`",
    }
    yield from _table(("what", "value"))
    for what, value in shown.items():
        yield row(what, value)


def scripts() -> Iterator[str]:
    yield from _table(("script", "SHA-1"))
    for script in BROKERS_SCRIPTS:
        yield row(script.__name__.removesuffix("_script"), f"`{script().sha}`")


def job_scripts() -> Iterator[str]:
    """What stands at the top of each script's source."""
    with as_file(files("sinks.redis").joinpath("lua")) as folder:
        sources = sorted(folder.rglob("*.lua"))
    for file in sources:
        head = takewhile(lambda line: line.startswith("--"), file.read_text("utf-8").splitlines())
        told = [line.removeprefix("--").removeprefix(" ") for line in head]
        if any(line.startswith("KEYS:") for line in told):
            yield f"`{file.relative_to(folder)}`"
            yield ""
            yield "```"
            yield from told
            yield "```"
            yield ""


def contract() -> Iterator[str]:
    """What a program under test is told."""
    example = Told(
        redis="redis://:password@127.0.0.1:6379/0",
        cluster="conformance-serves",
        broker="127.0.0.1:1",
        served="127.0.0.1:20480",
    )
    yield from _table(("variable", "in the command", "example"))
    for (variable, value), word in zip(
        example.environment().items(), msgspec.structs.fields(Told), strict=True
    ):
        yield row(f"`{variable}`", f"`{{{word.name}}}`", f"`{value}`")


def rules() -> Iterator[str]:
    yield from _table(("rule", "what it says"))
    for name, rule in RULES.items():
        yield row(f"`{name}`", rule.text)


def broker_rows() -> Iterator[str]:
    """What a broker may ask for."""
    yield from _table(("record is", "event", "record becomes", "owner", "only if"))
    for state, effects in TRANSITIONS.items():
        for event, effect in effects.items():
            if event in BROKER_EVENTS:
                given = _GIVEN[effect.given]
                yield row(state.value, f"`{event}`", effect.state.value, effect.owner, given)


def topic_rows() -> Iterator[str]:
    """What the owner of a topic's bundle may ask for."""
    texts = dict(words(topic_life.Given))
    yield from _table(("topic is", "event", "topic becomes", "only if"))
    for state, effects in topic_life.TRANSITIONS.items():
        for event, effect in effects.items():
            given = "" if effect.given is topic_life.Given.NOTHING else texts[effect.given]
            becomes = f"{effect.state.value}, and stays" if effect.stays else effect.state.value
            yield row(state.value, f"`{event}`", becomes, given)


def form(name: str) -> Iterator[str]:
    """A form's members, and examples of it."""
    here = FORMS[name]
    for kind in (here.type, *here.parts):
        yield f"`{kind.__name__}`: {summary(kind)}".replace("``", "`")
        yield ""
        yield from _table(("member", "type", "if absent", "meaning"))
        for each in members(kind):
            absent = f"`{each.default}`" if each.default else "(must be there)"
            yield row(f"`{each.name}`", each.type, absent, each.text)
        yield ""
    yield from _json(*here.examples)


def enumeration(kind: type[Enum], skip: Iterable[str] = ()) -> Iterator[str]:
    yield from _table(("word", "meaning"))
    for word, text in words(kind):
        if word not in skip:
            yield row(f"`{word}`", text)


def causes() -> Iterator[str]:
    yield from _table(("cause", "kind", "ask again after", "meaning"))
    for word, text in words(Cause):
        after = RETRY_AFTER_MS.get(Cause(word))
        kind = AnswerKind.FAILED if after is None else AnswerKind.RETRY
        yield row(f"`{word}`", kind, "" if after is None else f"{after} ms", text)


def calls(made: Callable[[], Mapping[str, Call]]) -> Iterator[str]:
    shown = made()
    # Shown once: the keys that all calls of a script begin with.
    columns = zip(*(call.keys for call in shown.values()), strict=False)
    fixed = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    for number, (what, call) in enumerate(shown.items()):
        yield f"Example: {what}."
        yield ""
        yield "```"
        known = fixed if number else 0
        yield from (f"KEYS[{i}]  {key}" for i, key in enumerate(call.keys[known:], known + 1))
        yield from (f"ARGV[{i}]  {each or '(empty)'}" for i, each in enumerate(call.arguments, 1))
        yield f"answer   {msgspec.json.encode(call.answer).decode()}"
        yield "```"
        yield ""


def schema_list() -> Iterator[str]:
    yield from _table(("schema", "form"))
    for name, each in FORMS.items():
        yield row(f"`trimtab/wire/schemas/{name}.json`", summary(each.type))


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = MappingProxyType(
    {
        "topics": topics,
        "keys": redis_keys,
        "numbers": numbers,
        "scripts": scripts,
        "job-scripts": job_scripts,
        "states": partial(enumeration, State),
        "broker-rows": broker_rows,
        "contract": contract,
        "rules": rules,
        "refusals": partial(enumeration, Refused),
        "topic-refusals": partial(enumeration, TopicRefused),
        "topic-states": partial(enumeration, TopicState),
        "topic-rows": topic_rows,
        "renewals": partial(enumeration, Renewal),
        "commands": partial(enumeration, CommandKind),
        "intents": lambda: enumeration(IntentKind),
        "causes": causes,
        "lease-calls": partial(calls, lease_calls),
        "transition-calls": partial(calls, transition_calls),
        "schemas": schema_list,
        **{f"form {name}": partial(form, name) for name in FORMS},
    }
)


def _json(*values: Any) -> Iterator[str]:
    for value in values:
        yield "```json"
        yield msgspec.json.encode(value).decode()
        yield "```"
        yield ""


def _table(titles: Iterable[str]) -> Iterator[str]:
    shown = tuple(titles)
    yield row(*shown)
    yield "|" + "---|" * len(shown)
