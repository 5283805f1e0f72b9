"""The outcomes of `trimtab simulate` as a table, and as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import msgspec
from rich.table import Table

from simulation.scenarios import Scenario, ScenarioOutcome
from simulation.scenarios.comparisons import curve as curves
from simulation.scenarios.comparisons.comparing import by_strategy, cell, lines

_NAMING: Final = 2
"""Columns of a curve that say which point it is."""


def table_of(name: str, outcomes: Sequence[ScenarioOutcome], *, curve: bool) -> Table:
    """A column for each strategy, or with ``curve`` a row for each target."""
    return _curve_table(name, outcomes) if curve else _table(name, outcomes)


def document_of(
    name: str, outcomes: Sequence[ScenarioOutcome], scenario: Scenario, *, curve: bool
) -> bytes:
    """Every run's figures, as JSON; ``scenario`` is that of the first run."""
    runs = _curve_runs(outcomes) if curve else [_run(each) for each in outcomes]
    document = {"v": 1, "name": name, "scenario": asdict(scenario), "runs": runs}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _title(name: str, seeds: int) -> str:
    return name if seeds == 1 else f"{name}, {seeds} seeds: median (worst)"


def _table(name: str, outcomes: Sequence[ScenarioOutcome]) -> Table:
    groups = by_strategy(outcomes)
    table = Table(title=_title(name, len(outcomes) // len(groups)), title_justify="left")
    table.add_column("")
    for each in groups:
        table.add_column(each, justify="right")
    for line in lines(outcomes):
        cells = (cell(line, [o.figures for o in each]) for each in groups.values())
        table.add_row(line.title, *cells)
    return table


def _curve_table(name: str, outcomes: Sequence[ScenarioOutcome]) -> Table:
    points = curves.points_of(outcomes)
    table = Table(title=_title(name, len(points[0].outcomes)), title_justify="left")
    for place, head in enumerate(curves.columns()):
        table.add_column(head, justify="left" if place < _NAMING else "right")
    for row in curves.rows(points):
        table.add_row(*row)
    return table


def _run(outcome: ScenarioOutcome) -> dict[str, object]:
    figures = asdict(outcome.figures)
    return {"strategy": outcome.strategy, "seed": outcome.scenario.seed, "figures": figures}


def _curve_runs(outcomes: Sequence[ScenarioOutcome]) -> list[dict[str, object]]:
    """The runs with what each aims at; a strategy with a range of its own has no target."""
    return [
        _run(outcome) | {"target": point.target, "aim": point.aim}
        for point in curves.points_of(outcomes)
        for outcome in point.outcomes
    ]
