"""The cost of a large fleet's lists over HTTP: time to the first page, and the server's memory.

Redis holds the records of 10,000 brokers with 100 bundles each. Kafka holds an hour of their
rounds, written as the job writes them. `trimtab api` is a process of its own, with its defaults.
The benchmark asks for each list's first page of 100 again and again on one connection, and reads
the whole answer. The memory is the process's resident memory after all lists.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlencode

import httpx2
import numpy as np
import psutil

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.served_fleet import START_S, ServedFleet, served_fleet
from benchmarks.synthetic import CLUSTER

BROKERS: Final = 10_000
BUNDLES: Final = 100
"""Bundles of each broker."""
ANSWERS: Final = 200
PAGE_MS: Final = 200.0
MEMORY_MIB: Final = 500.0
_SHOWN: Final = 50
"""Brokers that the page shows at once."""


def measure(folder: Path, brokers: int = BROKERS, bundles: int = BUNDLES) -> list[Figure]:
    """Ask for each list, then look at the server's memory."""
    with served_fleet(folder, brokers, bundles) as fleet, httpx2.Client(timeout=START_S) as client:
        pages = [
            _page(client, name, url, says)
            for name, (url, says) in _lists(fleet, brokers * bundles).items()
        ]
        held = psutil.Process(fleet.pid).memory_info().rss / 2**20
    most = Bar(Limit.AT_MOST, MEMORY_MIB)
    return [
        *pages,
        figure("api.memory", held, "MiB", "of the process, after all lists", most),
    ]


def _lists(fleet: ServedFleet, bundles: int) -> dict[str, tuple[str, str]]:
    base = f"{fleet.url}/trimtab/v1/clusters"
    here = f"{base}/{CLUSTER}"
    shown = urlencode({"broker": fleet.brokers[:_SHOWN]}, doseq=True)
    return {
        "clusters": (base, "all clusters, each with its health"),
        "brokers": (f"{here}/brokers", "the busiest brokers"),
        "bundles": (f"{here}/bundles", f"bundles, of {bundles:,}"),
        "bundles_of_broker": (f"{here}/bundles?broker={fleet.brokers[0]}", "one broker's bundles"),
        "namespaces": (f"{here}/namespaces", "namespaces"),
        "overview": (f"{here}/overview", "the page's head"),
        "heat_map": (f"{here}/heat-map", "the page's heat map, 50 rows of 60 rounds"),
        "resources": (f"{here}/resources?{shown}", "load by resource of 50 brokers"),
        "rounds": (f"{here}/rounds", "the last rounds"),
    }


def _page(client: httpx2.Client, name: str, url: str, says: str) -> Figure:
    taken = []
    for _ in range(ANSWERS):
        started = time.perf_counter()
        client.get(url).raise_for_status()
        taken.append(1000 * (time.perf_counter() - started))
    worst = float(np.quantile(taken, 0.99))
    says = f"p99 of {ANSWERS}, {says}; median {median(taken):.1f} ms"
    return figure(f"api.{name}", worst, "ms", says, Bar(Limit.AT_MOST, PAGE_MS))
