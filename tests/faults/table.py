"""What is reported for each row of the fault matrix: a table to read and a file to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

Figure = float | int | str


@dataclass(slots=True)
class Row:
    """One row of the matrix in docs/faults.md, as it went."""

    number: int
    fault: str
    held: list[str] = field(default_factory=list)
    """Invariants that were checked and held."""
    figures: dict[str, Figure] = field(default_factory=dict)
    seconds: float = 0.0
    passed: bool = False

    def holds(self, invariant: str, broken: Sequence[object]) -> None:
        """Fail unless nothing broke the invariant."""
        assert not broken, f"{invariant}: " + "\n".join(map(str, broken[:5]))
        self.held.append(invariant)

    def note(self, name: str, figure: Figure) -> None:
        self.figures[name] = figure


def show(rows: Iterable[Row], console: Console) -> None:
    table = Table("row", "fault", "invariants", "figures", "s", title="Faults", show_lines=True)
    for row in sorted(rows, key=lambda row: row.number):
        figures = "  ".join(f"{name} {value}" for name, value in row.figures.items())
        number = str(row.number) if row.passed else f"[red]{row.number} failed[/red]"
        table.add_row(number, row.fault, " ".join(row.held), figures, f"{row.seconds:.0f}")
    console.print(table)


def keep(rows: Iterable[Row], seed: int, file: Path) -> None:
    ordered = sorted(rows, key=lambda row: row.number)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"seed": seed, "rows": [asdict(row) for row in ordered]}, indent=2)
    file.write_text(f"{text}\n")
