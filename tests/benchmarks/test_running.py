"""A benchmark that ends with an error costs its own figures and no other's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.document import read_runs
from benchmarks.figures import Figure, figure
from benchmarks.running import run


def test_what_ran_before_and_after_an_error_is_kept(tmp_path: Path) -> None:
    outcome, log = tmp_path / "bench.json", tmp_path / "bench.log"
    failed = run({"first": _one, "second": _broken, "third": _two}, outcome, log)
    assert failed == ["second"]
    assert _values(outcome) == {"first": 1.0, "third": 2.0}
    assert "the fleet did not come up" in log.read_text()


def test_a_run_is_on_disk_before_the_next_begins(tmp_path: Path) -> None:
    outcome = tmp_path / "bench.json"
    seen: list[dict[str, float]] = []

    def looking(folder: Path) -> Sequence[Figure]:
        seen.append(_values(outcome))
        return _two(folder)

    run({"first": _one, "second": looking}, outcome, tmp_path / "bench.log")
    assert seen == [{"first": 1.0}]


def test_figures_of_benchmarks_not_run_now_are_kept_and_those_of_a_failed_one_are_not(
    tmp_path: Path,
) -> None:
    outcome, log = tmp_path / "bench.json", tmp_path / "bench.log"
    run({"first": _one, "second": _two}, outcome, log)
    run({"first": _broken}, outcome, log)
    assert _values(outcome) == {"second": 2.0}


def _values(outcome: Path) -> dict[str, float]:
    return {name: found.figures[0].value for name, found in read_runs(outcome).items()}


def _one(_folder: Path) -> Sequence[Figure]:
    return [figure("one", 1.0, "s", "takes one second")]


def _two(_folder: Path) -> Sequence[Figure]:
    return [figure("two", 2.0, "s", "takes two seconds")]


def _broken(_folder: Path) -> Sequence[Figure]:
    message = "the fleet did not come up"
    raise RuntimeError(message)
