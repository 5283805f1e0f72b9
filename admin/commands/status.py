"""`trimtab status`: is each cluster well, and if not, what to type next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from admin.commands.connection import connect
from admin.commands.options import Config, Json
from admin.ending import FINDINGS, OK, end
from control.health import Grade, Status, status_of
from control.rounds import find_cluster

_MARKS: Final[Mapping[str | None, tuple[str, str]]] = {
    None: ("well", "green"),
    Grade.LOOK: ("look", "yellow"),
    Grade.ACT: ("act", "red"),
}
"""The word for a grade, and its colour."""


def status(
    cluster: Annotated[str | None, typer.Argument(help="Only this one.")] = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Say whether clusters are well, and what to type next if not; 6 if somebody must act."""
    with connect(config) as plane:
        found = plane.clusters()
        if not found:
            raise end("no round of any cluster is recorded: start a job (trimtab job)", FINDINGS)
        named = [*found.values()] if cluster is None else [find_cluster(found, cluster)]
    now_ms = time.time_ns() // 1_000_000
    states = sorted(status_of(each, now_ms) for each in named)
    if json:
        told = [{**each._asdict(), "grade": each.grade or "well"} for each in states]
        print(msgspec.json.encode({"v": 1, "clusters": told}).decode())
    else:
        show(Console(), states)
    raise typer.Exit(FINDINGS if any(each.grade is Grade.ACT for each in states) else OK)


def show(console: Console, states: list[Status]) -> None:
    """Print them; what to type stands on a line of its own, to be copied."""
    for each in states:
        _print(console, "", each.grade, f"{each.cluster}: {each.headline}")
        for finding in each.findings:
            _print(console, "  ", finding.grade, finding.what)
            if finding.next:
                _print(console, " " * 8, "", f"Next: {finding.next}")


def _print(console: Console, indent: str, grade: Grade | str | None, text: str) -> None:
    word, style = ("", "") if grade == "" else _MARKS[grade]
    line = Text.assemble(indent, (f"{word}  " if word else "", style), text)
    console.print(line, soft_wrap=True, highlight=False)
