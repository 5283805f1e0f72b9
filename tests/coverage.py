"""The rows of docs/pulsar-coverage.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "docs" / "pulsar-coverage.md"


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


def named_tests() -> dict[str, list[str]]:
    """The items that each named test shows."""
    found: dict[str, list[str]] = {}
    for row in rows():
        for test in row.evidence:
            found.setdefault(test, []).append(row.item)
    return found
