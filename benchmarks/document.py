"""docs/benchmarks.md, made from the committed runs so that it cannot say anything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.catalogue import BENCHMARKS
from benchmarks.figures import Figure, Run
from benchmarks.table import bar_of, number

RESULTS: Final = Path(__file__).parent / "results.json"
DOCUMENT: Final = Path("docs") / "benchmarks.md"

_HEAD: Final = """\
# Benchmarks

Generated from `benchmarks/results.json` by `python -m benchmarks --document`: do not edit.
`make bench` measures everything but `scale` again in 40 minutes and writes `build/bench.json`.
With `ONLY=name` it measures one benchmark, with `QUICK=1` those that need no job.
`python -m benchmarks --record` copies the outcome into `benchmarks/results.json`. The two sides of
a ratio are measured in one run, in turns, so a busy machine slows both. An absolute bar holds for
the machine that it names.
"""

_HOLDS: Final = {True: "yes", False: "**no**", None: ""}


def read_runs(path: Path) -> dict[str, Run]:
    """Runs by benchmark; none where there is no file."""
    if not path.exists():
        return {}
    runs = msgspec.json.decode(path.read_bytes(), type=list[Run])
    return {run.benchmark: run for run in runs}


def document(runs: Mapping[str, Run]) -> str:
    """The document, benchmarks in the order of the catalogue."""
    sections = ["\n".join(_section(runs[name])) for name in BENCHMARKS if name in runs]
    return "\n".join([_HEAD, *sections])


def _section(run: Run) -> Iterator[str]:
    title, _, text = (sys.modules[BENCHMARKS[run.benchmark].__module__].__doc__ or "").partition(
        "\n"
    )
    machine = run.machine
    load = f"{machine.load_before[0]:.1f} before, {machine.load_after[0]:.1f} after"
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    yield f"## {run.benchmark}\n"
    yield f"{title}\n{text.rstrip()}\n"
    yield "| figure | value | unit | bar | holds | |\n|---|---:|---|---|---|---|"
    yield from (_row(figure) for figure in run.figures)
    yield f"\n`{run.command}`, {run.at} UTC, {run.seconds:.0f} s. {machine.cores} cores of"
    yield f"{machine.processor}, {number(machine.memory_gib)} GiB, load average {load}."
    yield f"{versions}.\n"


def _row(figure: Figure) -> str:
    value, holds = number(figure.value), _HOLDS[figure.holds]
    cells = (f"`{figure.name}`", value, figure.unit, bar_of(figure), holds, figure.says)
    return f"| {' | '.join(cells)} |"
