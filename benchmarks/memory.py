"""Resident memory of the job while a hundred brokers report every second, as in `latency`.

There are three kinds of process: the driver's JVM, which in local mode also runs the tasks; the
driver's Python; and the Python workers, together with the daemon from which they are forked. Memory
is read every second, first for a minute in which the job warms up, then for a steady minute. RSS
counts a page that several processes share once for each of them. PSS divides such a page among
them, which is more accurate for forked workers (Linux only).
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from benchmarks.figures import Figure, figure
from benchmarks.sampling import sampled
from benchmarks.scene import balanced, fleet_on_stack, steps

MINUTE: Final = 60.0

KINDS: Final = {
    "jvm": "driver JVM",
    "driver": "driver Python",
    "workers": "Python workers, all together",
}
Sample = dict[str, tuple[float, float]]
"""RSS and PSS in MiB by kind; PSS is 0 where the system does not tell."""


def measure(folder: Path) -> list[Figure]:
    """Measure for a minute, after a minute of warm-up."""
    with (
        fleet_on_stack(folder) as (stack, fleet),
        balanced(stack, fleet, folder) as job,
        sampled(lambda: sample(job.pid), every_s=1.0) as values,
    ):
        ended = threading.Event()
        stepping = threading.Thread(
            target=lambda: next(answer for answer in steps(fleet, seed=2) if ended.is_set()),
            daemon=True,
        )
        stepping.start()
        time.sleep(MINUTE)
        warm = len(values)
        time.sleep(MINUTE)
        ended.set()
        stepping.join()
    return [found for kind in KINDS for found in _figures(kind, values, warm)]


def sample(pid: int) -> Sample:
    """The memory that process `pid` and those it started use now."""
    found: Sample = dict.fromkeys(KINDS, (0.0, 0.0))
    job = psutil.Process(pid)
    for process in [job, *job.children(recursive=True)]:
        try:
            memory = process.memory_full_info()
            kind = "driver" if process == job else _kind(process)
        except psutil.Error:
            continue
        rss, pss = found[kind]
        found[kind] = (
            rss + memory.rss / 2**20,
            pss + getattr(memory, "pss", 0) / 2**20,
        )
    return found


def _kind(process: psutil.Process) -> str:
    return "jvm" if process.name() == "java" else "workers"


def _figures(kind: str, values: list[Sample], warm: int) -> list[Figure]:
    rss = [value[kind][0] for value in values]
    pss = [value[kind][1] for value in values]
    who = KINDS[kind]
    return [
        figure(
            f"memory.{kind}", median(rss[warm:]), "MiB", f"{who}: RSS, steady", raw={"MiB": rss}
        ),
        figure(f"memory.{kind}_peak", max(rss), "MiB", f"{who}: RSS at its highest"),
        figure(
            f"memory.{kind}_pss", median(pss[warm:]), "MiB", f"{who}: PSS, steady", raw={"MiB": pss}
        ),
    ]
