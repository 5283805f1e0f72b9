"""Two systems' answers to pulsar-admin are compared by what they mean."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.admin_script import (
    RECORDED,
    SCRIPT,
    Answer,
    Command,
    Leeway,
    differences,
    normalise,
    parse,
    places_of,
    read_answers,
    write_answers,
)

ROOT = Path(__file__).parents[2]
PLACES = places_of(
    "real",
    [
        ("10.0.0.1:8080", "http://10.0.0.1:8080", "pulsar://10.0.0.1:6650"),
        ("10.0.0.12:8080", "http://10.0.0.12:8080", "pulsar://10.0.0.12:6650"),
    ],
)


def said(stdout: str = "", stderr: str = "", code: int = 0) -> Answer:
    return Answer(code, stdout, stderr)


def differing(leeway: Leeway, one: Answer, other: Answer) -> bool:
    return bool(differences([Command("it", leeway, "line")], {"it": one}, {"it": other}))


def test_a_script_has_headings_names_and_leeways() -> None:
    script = "# brokers\n\nlist [order]: brokers list {cluster}\nleader: brokers leader-broker\n"
    assert list(parse(script)) == [
        Command("list", Leeway.ORDER, "brokers list {cluster}"),
        Command("leader", Leeway.NONE, "brokers leader-broker"),
    ]


@pytest.mark.parametrize("line", ["brokers list", "a: b\na: c", "Name: b", "a [often]: b"])
def test_what_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"often|not a command"):
        list(parse(line))


def test_arguments_are_quoted_as_in_a_shell_and_filled() -> None:
    command = Command("it", Leeway.NONE, 'namespaces unload -d {broker-2} "shop/a b"')
    assert command.arguments(PLACES) == ["namespaces", "unload", "-d", "10.0.0.12:8080", "shop/a b"]


def test_a_place_that_is_not_known_is_named() -> None:
    with pytest.raises(KeyError, match="broker-3"):
        Command("it", Leeway.NONE, "brokers namespaces -u {broker-3}").arguments(PLACES)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://10.0.0.1:8080", "{broker-1-web}"),
        ("pulsar://10.0.0.12:6650", "{broker-2-service}"),
        ("[10.0.0.1:8080, 10.0.0.12:8080]", "[{broker-1}, {broker-2}]"),
        ("pulsar/real/10.0.0.1:8080/0x0_0x1", "pulsar/{cluster}/{broker-1}/0x0_0x1"),
        ('"10.0.0.12"', '"{broker-2-host}"'),
        ("10.0.0.123:8080", "10.0.0.123:8080"),
        ("10.0.0.1:80801", "{broker-1-host}:80801"),
        ("210.0.0.1:8080", "210.0.0.1:8080"),
        ("a real-time cluster, unreal", "a real-time cluster, unreal"),
        ("Cluster real.", "Cluster {cluster}."),
    ],
)
def test_names_of_a_system_give_way_to_places(text: str, shown: str) -> None:
    assert normalise(said(text, text), PLACES) == said(shown, shown)


def test_brokers_that_share_a_host_keep_the_first_ones_name() -> None:
    places = places_of(
        "c", [(f"h:{web}", f"http://h:{web}", f"pulsar://h:{web}1") for web in (1, 2)]
    )
    assert normalise(said("h:2 h"), places) == said("{broker-2} {broker-1-host}")


def test_where_in_its_code_a_jvm_failed_is_left_out() -> None:
    server = "Message: null\n\nStacktrace:\n\njava.lang.Error\n\tat a.B.c(D.java:1)\n\nReason: …\n"
    client = "java.lang.Error: x\n\tat a.B.c(D.java:1)\nCaused by: y\n\tat e\n\t... 12 more\n"
    assert normalise(said(stderr=server), PLACES) == said(stderr="Message: null")
    shown = said(stderr="java.lang.Error: x\nCaused by: y\n")
    assert normalise(said(stderr=client), PLACES) == shown


def test_alike_is_the_same_exit_code_stdout_and_stderr() -> None:
    one = said("out", "err", 1)
    assert not differing(Leeway.NONE, one, said("out", "err", 1))
    assert differing(Leeway.NONE, one, said("out", "err"))
    assert differing(Leeway.NONE, one, said("else", "err", 1))
    assert differing(Leeway.NONE, one, said("out", "else", 1))


def test_an_owner_may_be_another_broker_but_nothing_else() -> None:
    one = said("{broker-1-service}\n")
    assert not differing(Leeway.OWNER, one, said("{broker-2-service}\n"))
    assert differing(Leeway.OWNER, one, said("{broker-2-web}\n"))
    assert differing(Leeway.OWNER, one, said("{broker-1-service}\n", code=1))


def test_a_set_may_be_printed_in_any_order_but_whole() -> None:
    one = said("d1    Domain(brokers=[a, b])\nd2    Domain(brokers=[c])\n")
    assert not differing(
        Leeway.ORDER, one, said("d2    Domain(brokers=[c])\nd1    Domain(brokers=[b, a])\n")
    )
    assert differing(Leeway.ORDER, one, said("d1    Domain(brokers=[a, b])\n"))
    assert differing(Leeway.ORDER, one, said(one.stdout, code=1))


def test_an_exit_code_alone_or_nothing_may_be_asked_for() -> None:
    assert not differing(Leeway.EXIT, said("one"), said("other", "err"))
    assert differing(Leeway.EXIT, said(), said(code=1))
    assert not differing(Leeway.FREE, said(), said(code=1))


def test_a_difference_has_both_answers() -> None:
    (found,) = differences(
        [Command("it", Leeway.NONE, "line")], {"it": said("a")}, {"it": said("b")}
    )
    assert found == ("it", said("a"), said("b"))


def test_a_command_without_an_answer_is_an_error() -> None:
    with pytest.raises(KeyError, match="it"):
        differences([Command("it", Leeway.NONE, "line")], {}, {"it": said()})


def test_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    commands = [Command("it", Leeway.NONE, "line"), Command("set", Leeway.ORDER, "line")]
    answers = {"it": said("a\nb", "err\n", 1), "set": said("b a\n")}
    write_answers(tmp_path / "answers", commands, answers)
    assert read_answers(tmp_path / "answers") == answers


def test_what_is_not_compared_is_not_kept(tmp_path: Path) -> None:
    commands = [Command("it", Leeway.EXIT, "line")]
    write_answers(tmp_path / "answers", commands, {"it": said("figures", code=1)})
    assert read_answers(tmp_path / "answers") == {"it": said(code=1)}


def test_real_brokers_answered_every_command_of_the_script() -> None:
    commands = list(parse(SCRIPT.read_text("utf-8")))
    recorded = read_answers(RECORDED)
    assert list(recorded) == [command.name for command in commands]
    assert differences(commands, recorded, recorded) == []


def test_no_address_is_left_in_the_recorded_answers() -> None:
    text = RECORDED.read_text("utf-8")
    assert not re.search(r"\d+\.\d+\.\d+\.\d+|localhost", text)


def test_the_document_counts_the_commands_that_are_answered_alike() -> None:
    script = {each.name for each in parse(SCRIPT.read_text("utf-8"))}
    reasons = tomllib.loads(SCRIPT.with_name("differences.toml").read_text("utf-8")).values()
    differing = [name for reason in reasons for name in reason["commands"]]
    assert len(differing) == len({*differing})
    assert {*differing} <= script
    told = f"{len(script)} commands and Pulsar 4.0.8's answer to each. trimtab answers "
    told += f"{len(script) - len(differing)} of them"
    assert told in (ROOT / "docs" / "api.md").read_text("utf-8")
