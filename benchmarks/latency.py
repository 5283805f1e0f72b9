"""How long it takes from a broker's report to the command that it causes, and in which parts.

A hundred brokers with twenty bundles each report every second. The shedder acts on one hit, every
batch holds a round, and batches run back to back. Two hundred times (the steps), one broker reports
a load to which the right answer is one move. The time starts at that report's LogAppendTime in
Kafka and ends when the broker's agent has read the command from its Redis stream. All clocks are
this machine's. Kafka, Redis, the job and the hundred agents share its cores.

`waiting` is the time from the append until the batch with the report starts; `batch` is the time
from there until the Redis script runs; `delivery` is the time from there until the agent has the
command. Before and after, the same fleet reports into the empty pair: two chained operators that
compute nothing. The length of a batch limits the latency: a report that comes just after a batch
began waits for almost all of that batch, and is then read by the next one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Final

import numpy as np
import redis

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.fleet import BROKERS, BUNDLES
from benchmarks.sampling import sampled
from benchmarks.scene import Answer, balanced, fleet_on_stack, steps
from benchmarks.topics import append_times, batch_starts
from deploy.stack import Stack

STEPS: Final = 200
WARM_UP: Final = 20
EMPTY_SECONDS: Final = 40


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of one answered step's latency, in milliseconds."""

    waiting: int
    batch: int
    delivery: int

    @property
    def total(self) -> int:
        return self.waiting + self.batch + self.delivery


def measure(folder: Path) -> list[Figure]:
    """Measure the empty pair, the job, and the empty pair again, all under the same reports."""
    with fleet_on_stack(folder) as (stack, fleet):
        empty = _empty(stack)
        with balanced(stack, fleet, folder) as job:
            answers = steps(fleet, seed=1)
            warm = sum(1 for _ in islice(answers, WARM_UP))
            with sampled(job.stages, every_s=1.0) as stages:
                answered = list(islice(answers, STEPS))
        script = _script_seconds(stack)
        empty += _empty(stack)
        splits = _splits(stack, [answer for answer in answered if answer])
    assert warm == WARM_UP
    return _figures(splits, answered.count(None), empty, stages, script)


def _empty(stack: Stack) -> list[float]:
    """Batch seconds of the empty pair, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.empty", stack.kafka_bootstrap, str(EMPTY_SECONDS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def _script_seconds(stack: Stack) -> float:
    """Mean time of a transition script in Redis, the agents' included."""
    statistics = redis.Redis.from_url(stack.redis_url).info("commandstats")
    return float(statistics["cmdstat_evalsha"]["usec_per_call"]) / 1e6


def _splits(stack: Stack, answers: Iterable[Answer]) -> list[Split]:
    appended = append_times(stack.kafka_bootstrap)
    started = batch_starts(stack.kafka_bootstrap)
    splits = []
    for answer in answers:
        command = answer.receipt.command
        # A report that a newer one overtook in the agent's outbox was never sent.
        times = appended[answer.broker]
        at = min(sequence for sequence in times if sequence >= answer.sequence)
        _, query, batch, *_ = command.id.split("/")
        start = started[f"{query}/{batch}"]
        splits.append(
            Split(
                waiting=start - times[at],
                batch=command.issued_at - start,
                delivery=answer.receipt.at_ms - command.issued_at,
            )
        )
    return splits


def _figures(
    splits: list[Split],
    unanswered: int,
    empty: list[float],
    stages: list[dict[str, float]],
    script: float,
) -> list[Figure]:
    parts = {part: [getattr(s, part) / 1000 for s in splits] for part in Split.__slots__}
    totals = [split.total / 1000 for split in splits]
    p99 = float(np.percentile(totals, 99))
    batch = median(empty)
    load = f"{BROKERS} brokers, {BUNDLES} bundles each, a report a second"
    return [
        figure("latency.p50", median(totals), "s", f"report to command, {load}"),
        figure(
            "latency.p99",
            p99,
            "s",
            f"the same, over {len(totals)} steps",
            Bar(Limit.AT_MOST, 1.0, "a quiet two-core machine"),
            {"s": totals},
        ),
        figure(
            "latency.p99_ratio",
            p99 / batch,
            "empty batches",
            "p99 as a multiple of the empty pair's median batch",
            Bar(Limit.AT_MOST, 3.0),
            {"p99 s": [p99], "empty batch s": empty},
        ),
        figure(
            "latency.unanswered",
            unanswered,
            "steps",
            "steps without a command",
            Bar(Limit.AT_MOST, 0),
        ),
        figure("latency.empty_batch", batch, "s", "median batch of the empty pair"),
        *(_part(name, values, totals) for name, values in parts.items()),
        figure(
            "latency.script", 1000 * script, "ms", "mean time of a script in Redis, part of `batch`"
        ),
        *(
            figure(
                f"latency.spark_{stage}",
                1000 * median(sample.get(stage, 0.0) for sample in stages),
                "ms a batch",
                f"the job's batches: Spark's {stage}",
            )
            for stage in sorted(stages[-1])
        ),
    ]


def _part(name: str, seconds: list[float], totals: list[float]) -> Figure:
    share = mean(seconds) / mean(totals)
    high = float(np.percentile(seconds, 99))
    says = f"median; {share:.0%} of the total, p99 {high:.2g} s"
    return figure(f"latency.{name}", median(seconds), "s", says, raw={"s": seconds})
