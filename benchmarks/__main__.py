"""``python -m benchmarks``: measure, record, document.

(nothing)     run every benchmark but scale, print a table, write build/bench.json after each
--only NAME   run one
--quick       run those that need no job
--record      copy the runs of build/bench.json into benchmarks/results.json
--document    write docs/benchmarks.md from benchmarks/results.json

Exit code 1 when a benchmark ends with an error or a figure does not meet its bar. What Spark and
the servers say goes to build/bench.log.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from agent.logs import log_to_stderr
from benchmarks.catalogue import BENCHMARKS, QUICK, WHOLE
from benchmarks.document import DOCUMENT, RESULTS, document, read_runs
from benchmarks.running import run, save_runs
from benchmarks.table import table

BUILD: Final = Path("build")
OUTCOME: Final = BUILD / "bench.json"
LOG: Final = BUILD / "bench.log"


def main(
    only: Annotated[str | None, typer.Option(help="Name of one benchmark.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Those that need no job.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the last runs.")] = False,
    write: Annotated[bool, typer.Option("--document", help="Write the document.")] = False,
) -> None:
    """Measure every claim, or one."""
    if only is not None and only not in BENCHMARKS:
        print(f"no such benchmark: {only}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        raise SystemExit(2)
    if record:
        known = {**read_runs(RESULTS), **read_runs(OUTCOME)}
        save_runs(RESULTS, {name: known[name] for name in BENCHMARKS if name in known})
    if write:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(document(read_runs(RESULTS)))
    if record or write:
        return
    BUILD.mkdir(exist_ok=True)
    log_to_stderr(logging.WARNING)
    names = (only,) if only else QUICK if quick else WHOLE
    chosen = {name: BENCHMARKS[name] for name in names}
    failed = run(chosen, OUTCOME, LOG)
    runs = [found for name, found in read_runs(OUTCOME).items() if name in chosen]
    console = Console()
    for found in runs:
        console.print(table(found))
    for name in failed:
        print(f"{name}: ended with an error, see the end of {LOG}", file=sys.stderr)
    missed = any(figure.holds is False for found in runs for figure in found.figures)
    raise SystemExit(1 if failed or missed else 0)


if __name__ == "__main__":
    typer.run(main)
