"""Runs benchmarks one after another; what one measured is on disk before the next begins."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.catalogue import Benchmark
from benchmarks.document import read_runs
from benchmarks.figures import Run
from benchmarks.machine import load, machine


def run(benchmarks: Mapping[str, Benchmark], outcome: Path, log: Path) -> list[str]:
    """Run each benchmark, keep its figures in ``outcome``; returns those that ended with an error.

    An error costs the benchmark's own figures and no other's. Its traceback, and what the servers
    write to stderr, goes to ``log``. What ``outcome`` holds of benchmarks not run now is kept.
    """
    runs = read_runs(outcome)
    failed = []
    for name, benchmark in benchmarks.items():
        print(f"{name}: measuring, {log} tells what goes on", file=sys.stderr, flush=True)
        # No figure of an earlier run stands in for one that could not be measured now.
        runs.pop(name, None)
        try:
            with _said_to(log):
                runs[name] = _measured(name, benchmark)
        # A failure of one must not cost the others' figures.
        except Exception:
            failed.append(name)
            with log.open("a") as file:
                traceback.print_exc(file=file)
        save_runs(outcome, runs)
    return failed


def save_runs(path: Path, runs: Mapping[str, Run]) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(list(runs.values())), indent=1)
    path.write_bytes(encoded + b"\n")


def _measured(name: str, benchmark: Benchmark) -> Run:
    before, started = load(), time.monotonic()
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder:
        figures = tuple(benchmark(Path(folder)))
    return Run(
        benchmark=name,
        command=f"make bench ONLY={name}",
        at=at,
        seconds=round(time.monotonic() - started),
        machine=machine(before),
        figures=figures,
    )


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
