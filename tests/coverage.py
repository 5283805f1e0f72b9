"""The rows of docs/pulsar-coverage.md, and the rules of docs/migration.md with their tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "docs" / "pulsar-coverage.md"

RULES: Final = TABLE.with_name("migration.md")


class Row(NamedTuple):
    """One item of Pulsar's documents."""

    item: str
    what: str
    status: str
    evidence: tuple[str, ...]
    """Tests' node ids without parameters; empty if the item is open."""


def rows() -> list[Row]:
    """All rows, in the table's order."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| 0")]
    return [_row(*(cell.strip() for cell in line.split("|")[1:5])) for line in lines]


def _row(item: str, what: str, status: str, evidence: str) -> Row:
    return Row(item, what, status, tuple(re.findall("`(.+?)`", evidence)))


def rules() -> dict[str, tuple[str, ...]]:
    """Each rule of a migration, in the page's order, with the tests that show it."""
    section = RULES.read_text().split("## What shows each rule")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "::" in line]
    cells = ([cell.strip() for cell in line.split("|")[1:3]] for line in lines)
    return {rule: tuple(re.findall("`(.+?)`", tests)) for rule, tests in cells}


def named_tests() -> dict[str, list[str]]:
    """The items and rules that each named test shows."""
    found: dict[str, list[str]] = {}
    shown = {row.item: row.evidence for row in rows()} | rules()
    for item, tests in shown.items():
        for test in tests:
            found.setdefault(test, []).append(item)
    return found
