"""docs/pulsar-coverage.md and the rules of docs/migration.md name only what there is;
tests/conftest.py has named tests pass."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.coverage import TABLE, named_tests, rows, rules

ROOT = Path(__file__).parents[2]


def test_every_item_has_one_row_and_a_status() -> None:
    found = rows()
    assert len({row.item for row in found}) == len(found) == 195
    for row in found:
        assert row.status in ("works", "departs", "open"), row
        assert bool(row.evidence) == (row.status != "open"), row


def test_every_named_test_exists() -> None:
    for test, items in named_tests().items():
        path, name = test.split("::")
        assert name in functions_of(path), (items, test)


@cache
def functions_of(path: str) -> set[str]:
    """Each file is read once, however many of its tests are named."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_rule_of_a_migration_has_a_test() -> None:
    assert len(rules()) == 17
    assert all(rules().values())


def test_every_departure_has_its_reason() -> None:
    told = TABLE.with_name("pulsar-differences.md").read_text()
    reasons = told.split("## Where Pulsar's documents say otherwise")[1]
    for row in rows():
        assert (row.status == "departs") == (row.item in reasons), row
