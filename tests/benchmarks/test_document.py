"""docs/benchmarks.md says what the committed run says, and nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.catalogue import BENCHMARKS
from benchmarks.document import DOCUMENT, RESULTS, document, read_runs
from benchmarks.figures import Bar, Figure, Limit, Machine, Run, figure
from benchmarks.table import bar_of, number

ROOT = Path(__file__).parents[2]


def test_the_document_is_the_one_made_from_the_committed_run() -> None:
    assert (ROOT / DOCUMENT).read_text() == document(read_runs(RESULTS))


def test_committed_runs_are_of_benchmarks_that_exist() -> None:
    assert read_runs(RESULTS).keys() == BENCHMARKS.keys()


@pytest.mark.parametrize(
    "found", [f for run in read_runs(RESULTS).values() for f in run.figures], ids=lambda f: f.name
)
def test_a_committed_figure_tells_the_truth_about_its_bar(found: Figure) -> None:
    assert found.holds == (found.bar.holds(found.value) if found.bar else None)


def test_a_missed_bar_stands_out() -> None:
    slow = figure(
        "latency.p99", 1.25, "s", "the slowest", Bar(Limit.AT_MOST, 1.0, "a quiet machine")
    )
    text = document({"latency": run(slow)})
    assert "| `latency.p99` | 1.25 | s | <= 1 (a quiet machine) | **no** | the slowest |" in text
    assert "`make bench ONLY=latency`, 2026-01-02 03:04 UTC, 60 s." in text
    running = " ".join(text.split())
    assert "2 cores of a processor, 8 GiB, load average 0.5 before, 1.5 after." in running


def test_a_run_reads_back_as_it_was_written() -> None:
    written = run(figure("intake.ratio", 0.3, "", "", Bar(Limit.AT_LEAST, 0.25), {"rows/s": [1.0]}))
    assert msgspec.json.decode(msgspec.json.encode(written), type=Run) == written


@pytest.mark.parametrize(
    ("limit", "value", "holds"),
    [
        (Limit.AT_LEAST, 0.25, True),
        (Limit.AT_LEAST, 0.2499, False),
        (Limit.AT_MOST, 0.25, True),
        (Limit.AT_MOST, 0.2501, False),
    ],
)
def test_a_bar_is_met_by_a_figure_on_it(limit: Limit, value: float, holds: bool) -> None:
    assert figure("f", value, "", "", Bar(limit, 0.25)).holds is holds


def test_a_value_is_judged_before_it_is_rounded() -> None:
    found = figure("f", 0.249_999, "", "", Bar(Limit.AT_LEAST, 0.25))
    assert (found.value, found.holds) == (0.25, False)


def test_numbers_are_written_as_people_read_them() -> None:
    assert [number(v) for v in (231_000.4, 99.96, 0.2571)] == ["231,000", "100", "0.257"]
    assert bar_of(figure("f", 1.0, "", "")) == ""


def run(*figures: Figure) -> Run:
    machine = Machine(
        cores=2,
        processor="a processor",
        memory_gib=8.0,
        load_before=(0.5, 0.5, 0.5),
        load_after=(1.5, 1.0, 0.5),
        versions={"python": "3.11"},
    )
    return Run(
        benchmark="latency",
        command="make bench ONLY=latency",
        at="2026-01-02 03:04",
        seconds=60,
        machine=machine,
        figures=figures,
    )
