"""How commands show their answer on stdout: as a table, JSON, YAML or names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from admin.exit_codes import OK
from trimtab.explaining.words import iso, percent

Cell = Callable[[Any], str]
"""Formats a value for people."""

_WIDEST: Final = 10_000
"""Columns of a terminal that no table reaches."""


class Output(StrEnum):
    """The forms of an answer."""

    TABLE = "table"
    WIDE = "wide"
    """A table with every column."""
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    """Only the names, a line each, for other commands."""


class Shown(NamedTuple):
    """An answer: a document for programs, and rows or lines for people."""

    document: Any
    rows: Sequence[Mapping[str, Any]] = ()
    columns: Mapping[str, Cell] = {}
    """How each member of a row is shown; the first one names the row."""
    wide: Mapping[str, Cell] = {}
    """More columns."""
    lines: Sequence[Text] | None = None
    """Instead of a table."""
    notes: Sequence[str] = ()
    """For stderr."""
    code: int = OK


def show(shown: Shown, output: Output) -> None:
    """Print an answer; its notes go to stderr."""
    match output:
        case Output.JSON:
            print(msgspec.json.encode(shown.document).decode())
        case Output.YAML:
            print("---\n" + msgspec.yaml.encode(shown.document).decode(), end="")
        case Output.NAME:
            key = next(iter(shown.columns), "name")
            for row in shown.rows:
                print(row[key])
        case _ if shown.lines is not None:
            console = Console()
            for line in shown.lines:
                console.print(line, soft_wrap=True, highlight=False)
        case _:
            wide = shown.wide if output is Output.WIDE else {}
            _print_table({**shown.columns, **wide}, shown.rows)
    sys.stdout.flush()
    for note in shown.notes:
        typer.echo(note, err=True)


def _print_table(columns: Mapping[str, Cell], rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        typer.echo("none", err=True)
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(cell(row.get(name))) for name, cell in columns.items()))
    # Names are copied from here: none is cut at the terminal's edge.
    needed = Console(width=_WIDEST).measure(table).maximum
    console = Console(width=max(needed, 1))
    with console.capture() as captured:
        console.print(table, crop=False, highlight=False)
    # Nor is the last column filled up: a line that wraps would be followed by empty ones.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def text(value: object) -> str:
    """A value as it is; an absent one as nothing."""
    return "" if value is None else str(value)


def share(value: float | None) -> str:
    """A fraction in percent."""
    return "" if value is None else percent(value)


def moment(value: int | None) -> str:
    """A time (epoch ms)."""
    return "" if value is None else iso(value)


def describe(document: Mapping[str, Any], cells: Mapping[str, Cell] | None = None) -> Shown:
    """One thing: a member a line."""
    known = cells or {}
    rows = [
        {"": name, "value": known.get(name, _listed)(value)} for name, value in document.items()
    ]
    return Shown(document, rows, {"": text, "value": text})


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else text(value)
