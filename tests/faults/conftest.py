"""The rows of the fault matrix: `--row`, `--seed`, and a table of how they went.

A test of a row is marked ``fault(number, what is broken)`` and asks for ``row``, which takes the
invariants that held and the figures.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from tests.faults.table import Row, keep, show

_ROWS = pytest.StashKey[list[Row]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--row", type=int, help="one row of the fault matrix")
    group.addoption("--seed", type=int, help="of what is random in the faults; 1")
    group.addoption("--faults-json", type=Path, help="a file for the table")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(row, what): a row of the fault matrix")
    config.stash[_ROWS] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--row", None)
    if wanted is None:
        return
    marks = {item: item.get_closest_marker("fault") for item in items}
    chosen = [item for item, mark in marks.items() if mark and mark.args[0] == wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and report.passed and "row" in getattr(item, "funcargs", {}):
        item.funcargs["row"].passed = True  # type: ignore[attr-defined]  # of a Function
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash[_ROWS]
    file = config.getoption("--faults-json", None)
    if not rows or file is None:
        return
    show(rows, Console(file=terminalreporter._tw._file, width=120))
    keep(rows, _seed(config), file)


def _seed(config: pytest.Config) -> int:
    return config.getoption("--seed", None) or 1


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    return _seed(pytestconfig)


@pytest.fixture
def rng(row: Row, seed: int) -> Random:
    return Random(f"{row.number}/{seed}")


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    """The row of the fault that the test is marked with."""
    mark = request.node.get_closest_marker("fault")
    it = Row(*mark.args)
    request.config.stash[_ROWS].append(it)
    begin = time.monotonic()
    yield it
    it.seconds = time.monotonic() - begin
