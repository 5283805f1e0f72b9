"""docs/wire.md and the schemas are what the code's types say, and the examples are of that form."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from jsonschema import Draft202012Validator, ValidationError

from admin.wire.calls import Call, Outcome, lease_calls, transition_calls
from admin.wire.document import DOCUMENT, JAVA_SCRIPTS, java_scripts, write_parts
from admin.wire.examples import BROKER, COMMANDS, EXPLANATION, OTHER
from admin.wire.members import members, words
from admin.wire.schemas import FOLDER, FORMS, schema, schema_text
from sinks.redis.scripts import BROKERS_SCRIPTS
from sinks.redis.transition_call import ScriptOutcome
from tests.support.made import assert_made
from tests.support.opening import keep_alive, let_in
from trimtab.ownership import State
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind

ROOT = Path(__file__).parents[2]
CALLS = {**lease_calls(), **transition_calls()}


def check(name: str, value: Any) -> None:
    Draft202012Validator(schema(name)).validate(value)


def test_the_document_is_what_the_code_says() -> None:
    assert_made(DOCUMENT, write_parts((ROOT / DOCUMENT).read_text("utf-8")))


def test_the_example_in_java_calls_the_scripts_of_this_version() -> None:
    assert_made(JAVA_SCRIPTS, java_scripts())


def test_the_examples_use_words_that_exist() -> None:
    """The page once showed a rule and a setting that no job knows."""
    nearest = EXPLANATION.nearest
    assert nearest is not None
    assert nearest.now == Settings().dumped()[nearest.setting]
    assert {EXPLANATION.rule, *(each.reason for each in COMMANDS.values())} <= {*Reason, ""}


def test_a_document_without_a_part_is_refused() -> None:
    text = (ROOT / DOCUMENT).read_text("utf-8")
    with pytest.raises(ValueError, match="form record"):
        write_parts(text.replace("<!-- part: form record -->", ""))


@pytest.mark.parametrize("name", FORMS)
def test_the_shipped_schemas_are_those_of_the_types(name: str) -> None:
    assert_made(FOLDER / f"{name}.json", schema_text(name))
    Draft202012Validator.check_schema(schema(name))


def test_no_other_schema_is_shipped() -> None:
    shipped = {file.name for file in files("trimtab.wire").joinpath("schemas").iterdir()}
    assert shipped == {f"{name}.json" for name in FORMS}


@pytest.mark.parametrize("name", FORMS)
def test_examples_are_of_their_form_and_are_read_back(name: str) -> None:
    for example in FORMS[name].examples:
        text = msgspec.json.encode(example)
        check(name, msgspec.json.decode(text))
        assert msgspec.json.decode(text, type=FORMS[name].type) == example


def check_call(argument: str) -> None:
    said = msgspec.json.decode(argument)
    check("call", said)
    for asked in said["requests"]:
        for broker, command in asked.get("commands", ()):
            told = msgspec.json.decode(command)
            check("command", told)
            assert told["broker"] == broker


@pytest.mark.parametrize("call", transition_calls().values(), ids=list(transition_calls()))
def test_calls_and_their_answers_are_of_their_form(call: Call) -> None:
    check_call(call.arguments[0])
    for outcome in msgspec.json.decode(call.answer[1]):
        check("outcome", outcome)
        for record in (outcome["record"], *outcome.get("others", {}).values()):
            check("record", msgspec.json.decode(record))


def test_a_request_that_is_copied_from_the_document_is_one() -> None:
    """The page once showed requests as Python prints bytes, with each backslash doubled."""
    text = (ROOT / DOCUMENT).read_text("utf-8")
    shown = re.findall(r'^ARGV\[1\]  (\{"requests".*)$', text, re.MULTILINE)
    assert len(shown) == len(transition_calls())
    for each in shown:
        check_call(each)


def test_the_own_of_a_hand_over_lacks_what_the_document_says() -> None:
    transfer = COMMANDS[CommandKind.TRANSFER]
    explained = msgspec.structs.replace(transfer, why="in figures")
    own = msgspec.to_builtins(explained.handed_on(BROKER, OTHER))
    left_out = {"destination", "why", "epoch", "generation", "issuedAt", "deadline"}
    assert msgspec.to_builtins(explained).keys() - own.keys() == left_out
    changed = {"id", "broker", "kind", "source"}
    assert {each: own[each] for each in own.keys() - changed} == {
        each: value
        for each, value in msgspec.to_builtins(explained).items()
        if each not in left_out | changed
    }
    assert (own["id"], own["source"], own["broker"]) == (f"{transfer.id}/own", BROKER, OTHER)


def test_a_schema_refuses_what_lacks_a_member() -> None:
    with pytest.raises(ValidationError, match="'bundle' is a required property"):
        check("command", {"id": "1", "cluster": "c", "broker": "b", "kind": "own"})


def test_every_json_of_the_document_is_of_the_form_above_it() -> None:
    text = (ROOT / DOCUMENT).read_text("utf-8")
    parts = re.findall(r"<!-- part: form (\S+) -->(.*?)<!-- end -->", text, re.DOTALL)
    shown = [(name, each) for name, part in parts for each in re.findall(r"```json\n(.*)\n", part)]
    assert len(shown) == sum(len(form.examples) for form in FORMS.values())
    for name, each in shown:
        check(name, msgspec.json.decode(each))


def test_members_are_in_camel_case_but_for_those_of_the_glossary() -> None:
    found = {
        name
        for form in FORMS
        for name in re.findall(r'"(\w+)": \{', schema_text(form))
        if "_" in name
    }
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    line = next(line for line in glossary.splitlines() if "not in camelCase" in line)
    assert found == set(re.findall(r"`(\w+)`", line))


def test_an_outcome_has_the_members_that_the_store_reads() -> None:
    read = [field.encode_name for field in msgspec.structs.fields(ScriptOutcome)]
    assert [member.name for member in members(Outcome)] == read


def test_members_come_with_the_text_below_them() -> None:
    told = {member.name: member for member in members(Command)}
    assert told["why"].text == "What the plan does, in figures, for people."
    assert told["issuedAt"].default == "0"
    assert told["bundle"].default == ""
    assert dict(words(State))["Free"].startswith("The bundle has no owner")


def test_the_calls_are_what_a_server_takes(client: redis.Redis) -> None:
    """Every example of a call runs on Redis, and its answer has as many texts as shown."""
    let_in(client, "east", 7)
    keep_alive(client, "east", ["10.0.0.8:8080"])
    client.delete(keys.lease_key("east", "10.0.0.7:8080"))
    transition, lease, _ = (script() for script in BROKERS_SCRIPTS)
    calls = chain(
        ((lease, call) for call in lease_calls().values()),
        ((transition, call) for call in transition_calls().values()),
    )
    for script, call in calls:
        answer: Any = client.evalsha(script.sha, len(call.keys), *call.keys, *call.arguments)
        assert len(answer) == len(call.answer)
        if script is transition:
            for outcome in msgspec.json.decode(answer[1]):
                check("outcome", outcome)
