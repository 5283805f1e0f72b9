"""The whole job at size: ten thousand brokers of a hundred bundles that report every ten seconds,
in one cluster and in a hundred.

A process of its own sends the reports (`benchmarks.feed`). The job decides once a minute by
trimtab's own planner and explains it, observing only: there are no ownership records. Its
processes, the driver's JVM and Python and the Python workers, should use two thirds of two cores.
Batches run back to back; a batch takes as long as the time between its timestamp and the next
one's. The first minute, in which the JVM compiles, does not count.

``python -m benchmarks.scale BROKERS SECONDS`` measures one cluster of another size, and prints it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import psutil

from benchmarks.feed import BUNDLES
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.job import JobProcess
from benchmarks.memory import KINDS, sample
from benchmarks.sampling import sampled
from benchmarks.topics import batch_records
from deploy.process import Process
from deploy.stack import Stack
from sinks.kafka.topics import ensure_topics

EVERY_S: Final = 10.0
MINUTE: Final = 60.0


class Shape(NamedTuple):
    """A fleet, and how long to look at it after the first minute."""

    clusters: int
    brokers: int
    """Of each cluster."""
    seconds: float

    def __str__(self) -> str:
        return f"{self.clusters}x{self.brokers}"


SHAPES: Final = (Shape(1, 10_000, 600.0), Shape(100, 100, 600.0))


def measure(folder: Path) -> list[Figure]:
    """Each shape with servers and a job of its own."""
    return [found for shape in SHAPES for found in look_at(shape, folder / str(shape))]


def look_at(shape: Shape, folder: Path) -> list[Figure]:
    """One fleet of this shape, from the job's start."""
    with Stack(folder / "run") as stack:
        ensure_topics(stack.kafka_bootstrap)
        with (
            _fed(stack, shape, folder),
            JobProcess(stack, folder / "job", _settings(shape)) as job,
            sampled(lambda: sample(job.pid), every_s=5.0) as memory,
        ):
            time.sleep(MINUTE)
            began_ms, before = time.time() * 1000, _cpu_seconds(job.pid)
            time.sleep(shape.seconds)
            cores = (_cpu_seconds(job.pid) - before) / shape.seconds
        batches = sorted(batch_records(stack.kafka_bootstrap), key=lambda batch: batch.at)
    took = [
        (later.at - batch.at) / 1000 for batch, later in pairwise(batches) if batch.at >= began_ms
    ]
    rounds = sum(len(batch.rounds) for batch in batches if batch.at >= began_ms)
    accepted = cores * EVERY_S / (shape.clusters * shape.brokers)
    p50, p99 = np.percentile(took, (50, 99)).tolist()
    who = f"{shape.clusters} clusters of {shape.brokers} brokers, a report of each in {EVERY_S:g} s"
    return [
        figure(
            f"scale.{shape}.cores", cores, "cores", f"of the job, {who}", Bar(Limit.AT_MOST, 4 / 3)
        ),
        figure(f"scale.{shape}.report", 1000 * accepted, "CPU ms", "the same a report sent"),
        figure(f"scale.{shape}.p50", p50, "s a batch", "median", raw={"s": took}),
        figure(f"scale.{shape}.p99", p99, "s a batch", "", Bar(Limit.AT_MOST, EVERY_S)),
        figure(f"scale.{shape}.rounds", rounds / shape.clusters, "rounds", "held of each cluster"),
        *(
            figure(f"scale.{shape}.{kind}", max(each[kind][0] for each in memory), "MiB", who_is)
            for kind, who_is in KINDS.items()
        ),
    ]


@contextmanager
def _fed(stack: Stack, shape: Shape, folder: Path) -> Iterator[None]:
    arguments = (stack.kafka_bootstrap, shape.clusters, shape.brokers, EVERY_S)
    command = [sys.executable, "-m", "benchmarks.feed", *map(str, arguments)]
    feeding = Process("feed", command, folder=Path.cwd(), log=folder / "feed.log")
    feeding.start(lambda: True, MINUTE)
    try:
        yield
    finally:
        feeding.stop()


def _settings(shape: Shape) -> str:
    brokers = shape.clusters * shape.brokers
    return (
        f"[size]\nbrokers = {brokers}\nbundles = {brokers * BUNDLES}\n"
        "[settings.round]\nobserve_only = true\n"
    )


def _cpu_seconds(pid: int) -> float:
    """Of the job's processes, with those of its workers that have ended."""
    job = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:4]) for each in [job, *job.children(recursive=True)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        found = look_at(Shape(1, int(sys.argv[1]), float(sys.argv[2])), Path(scratch) / "scale")
    for each in found:
        print(f"{each.name} {each.value:g} {each.unit}")
