"""Boards, alerts and documents name only metrics of the catalogue, as they are now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from admin.documents import metrics
from deploy.dashboards.board import Board
from deploy.dashboards.boards import BOARDS, FOLDER
from deploy.dashboards.rendering import render
from tests.support.made import assert_made
from tests.support.prometheus import RULES
from trimtab.metrics import CATALOGUE
from trimtab.metrics.metric import MetricKind

ROOT: Final = Path(__file__).parents[2]
_NAMES: Final = re.compile(r"\b(?:trimtab|pulsar_lb)_[a-z][a-zA-Z_]*[a-zA-Z]\b")
_LABELS: Final = re.compile(r"\bby \(([^)]*)\)")

NO_METRICS: Final = {"trimtab_least_predicted_usage", "trimtab_share"}
"""Figures of docs/benchmarks.md."""


def exposed() -> set[str]:
    """All names that a query may use."""
    names = {metric.exposed for metric in CATALOGUE}
    histograms = [metric.name for metric in CATALOGUE if metric.kind is MetricKind.HISTOGRAM]
    return names | {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("file", [*documents(), RULES, *sorted(FOLDER.glob("*.json"))], ids=str)
def test_only_metrics_of_the_catalogue_are_named(file: Path) -> None:
    found = set(_NAMES.findall(file.read_text("utf-8")))
    assert found - exposed() - NO_METRICS == set()


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: str(board.uid))
def test_a_generated_board_equals_the_committed_one(board: Board) -> None:
    assert_made(FOLDER / f"{board.uid}.json", render(board))


def test_every_board_that_is_committed_is_made() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {board.uid for board in BOARDS}


def test_what_queries_sum_by_is_a_label() -> None:
    known = {label for metric in CATALOGUE for label in metric.labels} | {"le", "instance"}
    exprs = [query.expr for board in BOARDS for query in board.queries] + [RULES.read_text("utf-8")]
    used = {
        label.strip() for expr in exprs for by in _LABELS.findall(expr) for label in by.split(",")
    }
    assert used - known == set()


def test_the_list_of_metrics_is_made_of_the_catalogue() -> None:
    assert_made(metrics.DOCUMENT, metrics.write_document())
