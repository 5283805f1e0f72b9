"""The whole job at full size: ten thousand brokers that report every ten seconds.

Each broker has a hundred bundles. All are in one cluster, then in a hundred clusters of a hundred.
The job only observes there, and a tenth of the brokers is hot, so each round makes a plan of
thousands of moves. Then, in one cluster again (``owned``), each bundle has an ownership record and
the job acts; all brokers carry the same, as in a fleet at rest, so there is nothing to move. There
a namespace has four bundles, as by Pulsar's default, in the others 64.

A separate process sends the reports (`benchmarks.feed`), no faster than the job takes them. If the
job cannot take as many as are due, the rate that it takes is its maximum. The job decides once a
minute with trimtab's own planner, and explains its decisions. Each broker holds a lease, which the
job watches four times a second, a quarter of them each time. Its processes (the driver's JVM and
Python, and the Python workers) should use two thirds of two cores. A batch begins 3 s after the
start of the one before, which is the job's default for ten thousand brokers, or when that one has
ended. What a batch takes is the time from its timestamp to that of the next one; its reports came
since that of the one before. The time before the first round does not count, nor that until all
records are known, nor the first minute after it, in which the JVM compiles. At the end, half an
interval after a round, the job is killed as by kill -9 and started again, to measure how long it
takes until it has decided the next round. Just after a round that would be the interval, however
fast the job starts.

``python -m benchmarks.scale CLUSTERS BROKERS SECONDS [owned]`` measures another shape, and prints
it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import psutil

from benchmarks.feed import BUNDLES, cluster_name, records, taken
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.job import JobProcess
from benchmarks.memory import KINDS, sample
from benchmarks.sampling import sampled
from benchmarks.synthetic import broker_names
from benchmarks.topics import batch_records
from benchmarks.waiting import until
from deploy.process import Process
from deploy.stack import Stack
from sinks.kafka.publisher import Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import redis_client
from trimtab.metrics import job as metrics
from trimtab.wire import keys
from trimtab.wire.keys import lease_key, sessions_key
from trimtab.wire.rounds import BatchRecord

EVERY_S: Final = 10.0
MINUTE: Final = 60.0
CORES: Final = 4 / 3
_PATIENCE_S: Final = 1800.0
_LOOK_S: Final = 2.0
_SESSION: Final = 1


class Shape(NamedTuple):
    """A fleet, and how long to look at it."""

    clusters: int
    brokers: int
    """Brokers of each cluster."""
    seconds: float
    owned: bool = False
    """Whether bundles have ownership records, and the job acts."""

    def __str__(self) -> str:
        return f"{self.clusters}x{self.brokers}" + ("-owned" if self.owned else "")

    @property
    def bundles(self) -> int:
        """Of all clusters together."""
        return self.clusters * self.brokers * BUNDLES

    @property
    def due(self) -> float:
        """Reports a second."""
        return self.clusters * self.brokers / EVERY_S


class Look(NamedTuple):
    """What was seen of the job while its fleet reported."""

    began_ms: float
    ended_ms: float
    cpu_s: float
    memory: list[dict[str, tuple[float, float]]]
    restart_s: float
    known_s: float
    """From the job's start until it knew all records."""


SHAPES: Final = (
    Shape(1, 10_000, 180.0),
    Shape(100, 100, 180.0),
    Shape(1, 10_000, 180.0, owned=True),
)


def measure(folder: Path) -> list[Figure]:
    """Each shape with servers and a job of its own."""
    return [found for shape in SHAPES for found in look_at(shape, folder / str(shape))]


def look_at(shape: Shape, folder: Path) -> list[Figure]:
    """One fleet of this shape, from the job's start."""
    folder.mkdir(parents=True)
    with Stack(folder / "run") as stack:
        ensure_topics(stack.kafka_bootstrap)
        _lease(stack, shape)
        if shape.owned:
            publisher = Publisher(stack.kafka_bootstrap)
            for number in range(shape.clusters):
                publisher.publish(records(cluster_name(number), shape.brokers))
        with (
            JobProcess(stack, folder / "job", _settings(shape), None) as job,
            _fed(stack, job.checkpoint, shape, folder),
        ):
            seen = _seen(job, shape)
        batches = sorted(batch_records(stack.kafka_bootstrap), key=lambda batch: batch.at)
    counted = [batch for batch in batches if seen.began_ms <= batch.at <= seen.ended_ms]
    return [*_figures(shape, seen, counted), *_known(shape, seen), *_memory(shape, seen)]


def find_rate(batches: Sequence[BatchRecord]) -> float:
    """Reports a second that consecutive batches took: the median of all minutes between the starts
    of two. A batch that holds a round takes fewer, and the next ones more, so what is counted from
    one moment to another depends on how long before them the last round was."""
    began_s = np.array([batch.at for batch in batches]) / 1000
    spans = [batch.offsets.get(keys.LOAD_REPORTS, {}).values() for batch in batches]
    taken = np.cumsum([sum(end - first for first, end in each) for each in spans])
    first = np.flatnonzero(began_s + MINUTE <= began_s[-1])
    last = np.searchsorted(began_s, began_s[first] + MINUTE)
    return float(np.median((taken[last] - taken[first]) / (began_s[last] - began_s[first])))


def _seen(job: JobProcess, shape: Shape) -> Look:
    began = time.monotonic()
    _wait_for_rounds(job, shape.clusters)
    if shape.owned:
        known = partial(taken, job.checkpoint, keys.OWNERSHIP)
        until(lambda: known() >= shape.bundles, "all records", _PATIENCE_S, _LOOK_S)
        _wait_for_rounds(job, job.total(metrics.ROUNDS) + 1)
    known_s = time.monotonic() - began
    time.sleep(MINUTE)
    with sampled(lambda: sample(job.pid), every_s=5.0) as memory:
        began_ms, cpu = time.time() * 1000, _cpu_seconds(job.pid)
        time.sleep(shape.seconds)
        cpu = _cpu_seconds(job.pid) - cpu
    ended_ms = time.time() * 1000
    _wait_for_rounds(job, job.total(metrics.ROUNDS) + 1)
    time.sleep(MINUTE / 2)
    killed = time.monotonic()
    job.kill_and_start()
    _wait_for_rounds(job, 1)
    restart_s = time.monotonic() - killed
    return Look(began_ms, ended_ms, cpu, memory, restart_s, known_s)


def _wait_for_rounds(job: JobProcess, rounds: float) -> None:
    """Until the process has decided so many; asked seldom, since large fleets' metrics are long."""
    until(lambda: job.total(metrics.ROUNDS) >= rounds, f"{rounds} rounds", _PATIENCE_S, _LOOK_S)


def _figures(shape: Shape, seen: Look, batches: Sequence[BatchRecord]) -> list[Figure]:
    who = f"{shape.clusters} x {shape.brokers} brokers, each reports every {EVERY_S:g} s"
    if shape.owned:
        who += ", with ownership records"
    seconds, name = (seen.ended_ms - seen.began_ms) / 1000, f"scale.{shape}"
    took = [(later.at - batch.at) / 1000 for batch, later in pairwise(batches)]
    rounds = sum(len(batch.rounds) for batch in batches)
    raw, cores, rate = {"s": took}, seen.cpu_s / seconds, find_rate(batches)
    return [
        figure(
            f"{name}.reports",
            rate,
            "reports/s",
            f"reports taken, {who}",
            Bar(Limit.AT_LEAST, 0.99 * shape.due),
        ),
        figure(
            f"{name}.cores",
            cores,
            "cores",
            "used by the job meanwhile",
            Bar(Limit.AT_MOST, CORES),
        ),
        figure(
            f"{name}.report",
            1000 * cores / rate,
            "CPU ms",
            "job CPU for a report",
        ),
        figure(f"{name}.p50", median(took), "s a batch", f"median of {len(took)} batches", raw=raw),
        figure(
            f"{name}.p99",
            float(np.percentile(took, 99)),
            "s a batch",
            "the same batches, p99",
            Bar(Limit.AT_MOST, EVERY_S),
        ),
        figure(
            f"{name}.rounds",
            rounds / shape.clusters / (seconds / MINUTE),
            "rounds a minute",
            "held for each cluster",
        ),
        figure(
            f"{name}.restart",
            seen.restart_s,
            "s",
            "from kill -9 to the next round",
            Bar(Limit.AT_MOST, MINUTE),
        ),
    ]


def _known(shape: Shape, seen: Look) -> Iterator[Figure]:
    if shape.owned:
        says = f"from the first start until the job knows {shape.bundles} records"
        yield figure(f"scale.{shape}.known", seen.known_s, "s", says)


def _memory(shape: Shape, seen: Look) -> Iterator[Figure]:
    for kind, who in KINDS.items():
        first, highest = seen.memory[0][kind][0], max(each[kind][0] for each in seen.memory)
        says = f"{who}: RSS at its highest; {first:.0f} at the beginning"
        yield figure(f"scale.{shape}.{kind}", highest, "MiB", says)


@contextmanager
def _fed(stack: Stack, checkpoint: Path, shape: Shape, folder: Path) -> Iterator[None]:
    fleet = (shape.clusters, shape.brokers, EVERY_S, int(shape.owned))
    arguments = (stack.kafka_bootstrap, checkpoint, *fleet)
    command = [sys.executable, "-m", "benchmarks.feed", *map(str, arguments)]
    feeding = Process("feed", command, folder=Path.cwd(), log=folder / "feed.log")
    feeding.start(lambda: True, MINUTE)
    try:
        yield
    finally:
        feeding.stop()


def _lease(stack: Stack, shape: Shape) -> None:
    """Give each broker a lease that outlasts the benchmark, as no agent renews it."""
    names = broker_names(shape.brokers)
    with redis_client(stack.redis_url).pipeline(transaction=False) as together:
        for number in range(shape.clusters):
            cluster = cluster_name(number)
            for name in names:
                together.set(lease_key(cluster, name), f"+{_SESSION}", ex=round(_PATIENCE_S * 2))
            together.hset(sessions_key(cluster), mapping=dict.fromkeys(names, _SESSION))
        together.execute()


def _settings(shape: Shape) -> str:
    observes = str(not shape.owned).lower()
    return (
        f"[size]\nbrokers = {shape.clusters * shape.brokers}\nbundles = {shape.bundles}\n"
        f"[settings.round]\nobserve_only = {observes}\n"
    )


def _cpu_seconds(pid: int) -> float:
    """Processor seconds of the job's processes, including workers that have ended."""
    job = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:4]) for each in [job, *job.children(recursive=True)])


if __name__ == "__main__":
    clusters, brokers, seconds, *owned = sys.argv[1:]
    measured = Shape(int(clusters), int(brokers), float(seconds), owned=bool(owned))
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        found = look_at(measured, Path(scratch) / "scale")
    for each in found:
        print(f"{each.name} {each.value:g} {each.unit}: {each.says}")
