"""The rows of docs/pulsar-coverage.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "docs" / "pulsar-coverage.md"


class Row(NamedTuple):
    """One item of Pulsar's documents."""

    item: str
    what: str
    status: str
    evidence: str
    """A test's node id without parameters; empty if the item is open."""


def rows() -> list[Row]:
    """All rows, in the table's order."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| 0")]
    return [Row(*(cell.strip().strip("`") for cell in line.split("|")[1:5])) for line in lines]


def named_tests() -> dict[str, list[str]]:
    """The items by the test that shows them."""
    found: dict[str, list[str]] = {}
    for row in rows():
        if row.evidence:
            found.setdefault(row.evidence, []).append(row.item)
    return found
