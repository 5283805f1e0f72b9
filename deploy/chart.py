"""Renders the chart's templates without Helm, for the plain manifests and for tests.

    action   = {{ pipeline }}
             | {{ if pipeline }} … {{ else }} … {{ end }}
             | {{ range path }} … {{ end }}
    pipeline = command { "|" command }        each gets the value before it as its last argument
    command  = path | literal | function argument …

A small part of Go's templates, all that the chart uses: anything else is refused. Where Helm is
installed a test compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

CHART: Final = Path(__file__).parent / "helm" / "trimtab"

_ACTION: Final = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s|]+|\|')


class TemplateError(ValueError):
    """A template uses what this renderer does not know, or refuses the values."""


@dataclass(frozen=True, slots=True)
class _Action:
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _If:
    words: tuple[str, ...]
    then: Sequence[_Node]
    otherwise: Sequence[_Node]


@dataclass(frozen=True, slots=True)
class _Range:
    words: tuple[str, ...]
    body: Sequence[_Node]


_Node: TypeAlias = str | _Action | _If | _Range


@dataclass(frozen=True, slots=True)
class Scope:
    """What ``$`` and ``.`` stand for."""

    root: Mapping[str, Any]
    dot: Any


def render_chart(
    values: Mapping[str, Any], release: str, namespace: str = "default", chart: Path = CHART
) -> dict[str, str]:
    """The text of each template by its file's name; ``values`` override the chart's own.

    Raises TemplateError.
    """
    defaults = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    root = {
        "Values": merge(defaults, values),
        "Release": {"Name": release, "Namespace": namespace},
    }
    return {
        file.name: render(file.read_text("utf-8"), root)
        for file in sorted((chart / "templates").glob("*.yaml"))
    }


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values as Helm does: maps key by key, everything else as a whole."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            value = merge(under, value)
        merged[key] = value
    return merged


def render(template: str, root: Mapping[str, Any]) -> str:
    """One template's text; raises TemplateError."""
    tokens = list(_tokens(template))
    nodes, rest = _parse(tokens, 0)
    if rest != len(tokens):
        raise TemplateError("an end without its beginning")
    return "".join(_run(nodes, Scope(root, root)))


def _tokens(template: str) -> Iterator[str | _Action]:
    """Text and actions in turn; an action with a dash takes the space on that side with it."""
    position = 0
    strip = False
    for found in _ACTION.finditer(template):
        text = template[position : found.start()]
        text = text.lstrip() if strip else text
        yield text.rstrip() if found[1] else text
        yield _Action(tuple(_WORD.findall(found[2])))
        position, strip = found.end(), bool(found[3])
    yield template[position:].lstrip() if strip else template[position:]


def _parse(tokens: Sequence[str | _Action], at: int) -> tuple[list[_Node], int]:
    """The nodes from ``at`` to an ``else`` or ``end``, and where that is."""
    nodes: list[_Node] = []
    while at < len(tokens):
        token = tokens[at]
        if isinstance(token, str):
            nodes.append(token)
        elif token.words[0] in ("else", "end"):
            return nodes, at
        elif token.words[0] in ("if", "range"):
            node, at = _parse_block(tokens, at, token.words)
            nodes.append(node)
        else:
            nodes.append(token)
        at += 1
    return nodes, at


def _parse_block(
    tokens: Sequence[str | _Action], at: int, words: tuple[str, ...]
) -> tuple[_Node, int]:
    """The block that begins at ``at``, and where its ``end`` is."""
    body, stop = _parse(tokens, at + 1)
    otherwise: list[_Node] = []
    if stop < len(tokens) and tokens[stop] == _Action(("else",)):
        otherwise, stop = _parse(tokens, stop + 1)
    if stop >= len(tokens) or tokens[stop] != _Action(("end",)):
        raise TemplateError(f"{' '.join(words)}: no end")
    if words[0] == "if":
        return _If(words[1:], body, otherwise), stop
    if otherwise:
        raise TemplateError("range with else")
    return _Range(words[1:], body), stop


def _run(nodes: Sequence[_Node], scope: Scope) -> Iterator[str]:
    for node in nodes:
        match node:
            case str():
                yield node
            case _Action(words):
                yield _text(_evaluate(words, scope))
            case _If(words, then, otherwise):
                yield from _run(then if _evaluate(words, scope) else otherwise, scope)
            case _Range(words, body):
                for each in _evaluate(words, scope):
                    yield from _run(body, Scope(scope.root, each))


def _evaluate(words: tuple[str, ...], scope: Scope) -> Any:
    """The value of a pipeline."""
    piped: tuple[Any, ...] = ()
    command: list[str] = []
    for word in (*words, "|"):
        if word != "|":
            command.append(word)
            continue
        piped = (_call(command, scope, piped),)
        command = []
    return piped[0]


def _call(command: Sequence[str], scope: Scope, piped: tuple[Any, ...]) -> Any:
    name, *rest = command
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*(_value(each, scope) for each in rest), *piped)
    if rest or piped:
        raise TemplateError(f"{name}: no such function")
    return _value(name, scope)


def _value(word: str, scope: Scope) -> Any:
    """A literal's value, or what a path leads to."""
    if word.startswith('"'):
        return json.loads(word)
    if word.isdecimal():
        return int(word)
    found = scope.root if word.startswith("$.") else scope.dot
    if word == ".":
        return found
    if not re.fullmatch(r"\$?(\.\w+)+", word):
        raise TemplateError(f"{word}: not a path, a number or a string")
    for name in word.lstrip("$").split(".")[1:]:
        # Helm prints nothing for a name that does not exist; here that is an error.
        if not isinstance(found, Mapping) or name not in found:
            raise TemplateError(f"{word}: there is no {name}")
        found = found[name]
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise TemplateError(f"{value!r} cannot be printed as it is")


def _nindent(spaces: int, text: str) -> str:
    return "\n" + "\n".join(" " * spaces + line for line in text.split("\n"))


def _required(message: str, value: Any) -> Any:
    if value in (None, ""):
        raise TemplateError(message)
    return value


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "eq": lambda left, right: left == right,
    "nindent": _nindent,
    "quote": lambda value: json.dumps(_text(value)),
    "required": _required,
    "toYaml": lambda value: yaml.safe_dump(value, width=1_000).rstrip("\n"),
}
