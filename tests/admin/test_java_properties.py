"""Java's properties format; what the examples give is what JDK 17 gave for them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.config_import.java_properties import Entry, MalformedProperties, parse


def values(text: str) -> dict[str, str]:
    return {key: entry.value for key, entry in parse(text).items()}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param("\n \t\f\n", {}, id="blank lines"),
        pytest.param("# a=1\n  ! b=2\n", {}, id="comments"),
        pytest.param("# a\\\nb=2", {"b": "2"}, id="a comment does not go on"),
        pytest.param("a=1", {"a": "1"}, id="no newline at the end"),
        pytest.param("  a \t=  1 ", {"a": "1 "}, id="white space after the value stays"),
        pytest.param("a:1\nb 2\nc", {"a": "1", "b": "2", "c": ""}, id="other separators"),
        pytest.param("a==1\nb= :2", {"a": "=1", "b": ":2"}, id="one separator only"),
        pytest.param("a=1 # one", {"a": "1 # one"}, id="no comment after a value"),
        pytest.param("a=\nb = \n", {"a": "", "b": ""}, id="nothing"),
        pytest.param("a=1\nb=2\na=3", {"a": "3", "b": "2"}, id="the last wins"),
        pytest.param("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}, id="line ends"),
        pytest.param("a=1\x0bb=2\x85c=3", {"a": "1\x0bb=2\x85c=3"}, id="no other line ends"),
        pytest.param("a=1,\\\n   2,\\\r\n\t3", {"a": "1,2,3"}, id="a line goes on"),
        pytest.param("a=1\\\n\nb=2", {"a": "1", "b": "2"}, id="and ends with a blank one"),
        pytest.param("a=1\\\n# b", {"a": "1# b"}, id="a continuation is no comment"),
        pytest.param("\\\n# a=1\nb=2", {"b": "2"}, id="unless nothing went before"),
        pytest.param("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}, id="an escaped backslash ends a line"),
        pytest.param("a=1\\", {"a": "1"}, id="a line that cannot go on"),
        pytest.param("a\\=b\\ c\\:=1", {"a=b c:": "1"}, id="escapes in a key"),
        pytest.param("a=\\t\\n\\r\\f\\q\\'", {"a": "\t\n\r\fq'"}, id="escapes"),
        pytest.param("\\u0061=\\u00E9\\u00e9", {"a": "éé"}, id="code units"),
        pytest.param("a=\\ud83d\\ude00", {"a": "😀"}, id="two code units of one character"),
        pytest.param("a=\\\\u0061", {"a": "\\u0061"}, id="an escaped backslash before a u"),
    ],
)
def test_reading(text: str, read: dict[str, str]) -> None:
    assert values(text) == read


def test_a_value_is_where_its_line_begins() -> None:
    assert parse("# one\n\na=1,\\\n  2\nb=3") == {"a": Entry("1,2", 3), "b": Entry("3", 5)}


def test_every_malformed_escape_is_told() -> None:
    with pytest.raises(MalformedProperties) as caught:
        parse("a=\\u12\nb=1\n\\uXYZW=2\n# \\u\nc=\\\\u\n")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["line 1", "line 3"]


def written(properties: dict[str, str]) -> str:
    """As java.util.Properties.store writes them."""
    return "".join(
        f"{escaped(key, key=True)}={escaped(value, key=False)}\n"
        for key, value in properties.items()
    )


def escaped(text: str, *, key: bool) -> str:
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", " ": " "}
    out = []
    for place, character in enumerate(text):
        if character == " " and (key or place == 0):
            out.append("\\ ")
        elif character in named:
            out.append(named[character])
        elif character in "=:#!\\":
            out.append("\\" + character)
        elif " " < character < "\x7f":
            out.append(character)
        else:
            units = character.encode("utf-16-be")
            out += [f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2)]
    return "".join(out)


texts = st.text(st.sampled_from("ab=:#!\\ \t\f\r\nué\x85😀") | st.characters(codec="utf-16"))


@given(st.dictionaries(texts, texts))
def test_what_java_stores_is_read_back(properties: dict[str, str]) -> None:
    assert values(written(properties)) == properties


@given(st.text(st.sampled_from("ab=: \t\f\r\n\\#!u0")))
def test_any_text_is_read_or_told_to_be_malformed(text: str) -> None:
    lines = text.count("\n") + text.count("\r") + 1
    with suppress(MalformedProperties):
        assert all(1 <= entry.line <= lines for entry in parse(text).values())
