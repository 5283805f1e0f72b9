"""Writes docs/commands.md from the commands themselves: ``python -m admin.documents.commands``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from admin import cli
from admin.documents.tables import row

DOCUMENT: Final = Path("docs/commands.md")

_COMMON: Final = 10
"""An option that so many commands have, with the same words, is explained once."""

_HEAD: Final = """# All commands

<!-- made by python -m admin.documents.commands -->

[cli.md](cli.md) tells which command is for what, and what the exit codes mean. What is in square
brackets may be left out; what has dots after it may be repeated.
"""

Command = tuple[tuple[str, ...], Any]
"""The words of a command, and Typer's object of it."""


def commands(at: Any = None, words: tuple[str, ...] = ("trimtab",)) -> Iterator[Command]:
    """Every command below a group of them, in the order of ``trimtab --help``."""
    at = at or get_command(cli.build_app())
    if not hasattr(at, "commands"):
        yield words, at
        return
    for name, inner in at.commands.items():
        if not inner.hidden:
            yield from commands(inner, (*words, name))


def write_document() -> str:
    """The whole text."""
    listed = list(commands())
    count = Counter(_explained(each) for _, command in listed for each in _options(command))
    common = sorted(option for option, times in count.items() if times >= _COMMON)
    parts = [_HEAD, "## Options of many commands\n", *_table(common)]
    group = ""
    for words, command in sorted(listed, key=lambda each: (len(each[0]) == 2, each[0])):
        if group != (group := words[1] if len(words) > 2 else "The others"):
            parts.append(f"## {group}\n")
        parts += _section(words, command, common)
    return "\n".join(parts)


def _section(
    words: Sequence[str], command: Any, common: Sequence[tuple[str, str]]
) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    yield f"### {' '.join(words)}\n"
    yield f"```text\n{' '.join([*words, *map(_argument, arguments)])}\n```\n"
    yield f"{command.help}\n"
    options = [_explained(each) for each in _options(command)]
    own = [(f"`{_argument(each)}`", _line(each.help)) for each in arguments]
    own += [option for option in options if option not in common]
    if own:
        yield from _table(own)
    if shared := [name for name, _ in options if (name, _) in common]:
        yield f"Also {', '.join(shared)}.\n"


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "| | |\n|---|---|"
    yield from (row(*each) for each in rows)
    yield ""


def _options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option" and not each.hidden]


def _explained(option: Any) -> tuple[str, str]:
    names = " ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    said = _line(option.help)
    default = option.default
    if option.is_flag or callable(default) or default in (None, "", ()):
        return names, said
    shown = default.value if isinstance(default, Enum) else default
    return names, f"{said} Default: `{shown}`."


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _line(said: str | None) -> str:
    return " ".join((said or "").split())


if __name__ == "__main__":
    DOCUMENT.write_text(write_document(), "utf-8")
