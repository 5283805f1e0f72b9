"""What programs tell to type does what is meant: it is no dry run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from admin import cli

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("admin", "agent", "api", "control", "deploy", "sinks", "streaming", "trimtab")
_TOLD: Final = re.compile(r"\btrimtab ([a-z]+)(?: ([a-z-]+))?([^\n`;]*)")


def _texts(file: Path) -> Iterator[str]:
    """The texts of a file but its docstrings, with x for what is put into them."""
    tree = ast.parse(file.read_text("utf-8"))
    parts = {
        part
        for node in ast.walk(tree)
        for part in (
            node.values
            if isinstance(node, ast.JoinedStr)
            else [node.value]
            if isinstance(node, ast.Expr)
            else []
        )
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
        elif isinstance(node, ast.Constant) and node not in parts:
            yield str(node.value)


def _changes() -> list[tuple[str, str]]:
    """Commands that change something and are told to type, each with its options."""
    groups: dict[str, Any] = vars(get_command(cli.build_app()))["commands"]
    found = set[tuple[str, str]]()
    for file in (each for folder in FOLDERS for each in (ROOT / folder).rglob("*.py")):
        for group, verb, rest in (hit for text in _texts(file) for hit in _TOLD.findall(text)):
            command = groups.get(group)
            command = vars(command).get("commands", {}).get(verb, command) if command else None
            options = {name for each in getattr(command, "params", ()) for name in each.opts}
            if "--execute" in options:
                found.add((f"{group} {verb}".strip(), rest))
    return sorted(found)


@pytest.mark.parametrize(("command", "rest"), _changes())
def test_what_is_told_to_type_is_no_dry_run(command: str, rest: str) -> None:
    assert "--execute" in rest, command


def test_the_cure_of_a_quarantined_bundle_is_found() -> None:
    assert "bundles readmit" in {command for command, _ in _changes()}
