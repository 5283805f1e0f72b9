"""``python -m benchmarks``: measure, record, document.

(nothing)     run every benchmark, print a table, write build/bench.json
--only NAME   run one
--record      copy the runs of build/bench.json into benchmarks/results.json
--document    write docs/benchmarks.md from benchmarks/results.json

Exit code 1 when a figure does not meet its bar. What Spark and the servers say goes to
build/bench.log.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from agent.logs import log_to_stderr
from benchmarks.catalogue import BENCHMARKS
from benchmarks.document import DOCUMENT, RESULTS, document, read_runs
from benchmarks.figures import Run
from benchmarks.machine import load, machine
from benchmarks.table import table

BUILD: Final = Path("build")
OUTCOME: Final = BUILD / "bench.json"
LOG: Final = BUILD / "bench.log"


def main(
    only: Annotated[str | None, typer.Option(help="Name of one benchmark.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Keep the last runs.")] = False,
    write: Annotated[bool, typer.Option("--document", help="Write the document.")] = False,
) -> None:
    """Measure every claim, or one."""
    if only is not None and only not in BENCHMARKS:
        print(f"no such benchmark: {only}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        raise SystemExit(2)
    if record:
        _save(RESULTS, {**read_runs(RESULTS), **read_runs(OUTCOME)})
    if write:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(document(read_runs(RESULTS)))
    if record or write:
        return
    BUILD.mkdir(exist_ok=True)
    log_to_stderr(logging.WARNING)
    runs = {name: _run(name) for name in ([only] if only else BENCHMARKS)}
    _save(OUTCOME, runs)
    console = Console()
    for run in runs.values():
        console.print(table(run))
    missed = [f for run in runs.values() for f in run.figures if f.holds is False]
    raise SystemExit(1 if missed else 0)


def _run(name: str) -> Run:
    print(f"{name}: measuring, {LOG} tells what goes on", file=sys.stderr, flush=True)
    command = f"make bench ONLY={name}"
    before, started = load(), time.monotonic()
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder, _said_to(LOG):
        figures = tuple(BENCHMARKS[name](Path(folder)))
    return Run(
        benchmark=name,
        command=command,
        at=at,
        seconds=round(time.monotonic() - started),
        machine=machine(before),
        figures=figures,
    )


def _save(path: Path, runs: Mapping[str, Run]) -> None:
    ordered = [runs[name] for name in BENCHMARKS if name in runs]
    encoded = msgspec.json.format(msgspec.json.encode(ordered), indent=1)
    path.write_bytes(encoded + b"\n")


@contextmanager
def _said_to(log: Path) -> Iterator[None]:
    """Have this process and its children write to a file what they would write to stderr."""
    stderr = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


if __name__ == "__main__":
    typer.run(main)
