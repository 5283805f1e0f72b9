"""The cost of a scrape of the job's metrics with 10,000 brokers: size, and time to write it.

Each broker has trimtab's series and those of Pulsar's load balancer, as after a round. The times
are CPU times of this thread, medians of ten. For comparison prometheus-client writes the same
registry.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from prometheus_client import generate_latest

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.served_fleet import round_batch
from benchmarks.synthetic import NOW_MS
from sinks.exposition import Exposition
from streaming.metrics.gauges import show_round
from streaming.metrics.pulsar import show_round as show_for_pulsar

BROKERS: Final = 10_000
_TIMES: Final = 10


def measure(_: Path) -> list[Figure]:
    """Write a round's metrics again and again."""
    names = [f"pulsar-broker-{row:05d}.pulsar-broker.prod-eu-1.svc:8080" for row in range(BROKERS)]
    usage = {broker: row / (BROKERS + 7) for row, broker in enumerate(names)}
    (record,) = round_batch(1, NOW_MS, usage).rounds
    shown = Exposition()
    show_round(shown, record)
    show_for_pulsar(shown, record)
    ours, theirs = _times(shown.text), _times(lambda: generate_latest(shown.registry))
    size = len(shown.text()) / 1e6
    return [
        figure("exposition.size", size, "MB", f"{BROKERS:,} brokers", Bar(Limit.AT_MOST, 5.0)),
        figure(
            "exposition.time",
            median(ours),
            "CPU ms",
            "median to write it",
            Bar(Limit.AT_MOST, 300.0),
            {"CPU ms": ours},
        ),
        figure(
            "exposition.ratio",
            median(ours) / median(theirs),
            "of prometheus-client",
            "the same, compared with prometheus-client's time for the same registry",
            Bar(Limit.AT_MOST, 0.5),
            {"CPU ms": theirs},
        ),
    ]


def _times(write: Callable[[], bytes]) -> list[float]:
    taken = []
    for _ in range(_TIMES):
        began = time.thread_time()
        write()
        taken.append(1000 * (time.thread_time() - began))
    return taken
