"""A full plan at 10,000 brokers with 100 bundles each: a million bundles, from view to moves.

`trimtab.round.decide.decide` is timed, called as the job calls it: checks, the shedder, and for
each bundle that should leave, the filters, the placement and the rules of the round. One bundle in
a thousand moved ten minutes ago and must stay. The unit is one stable `numpy.argsort` of a million
random float64, done before every round. Both are medians of this process's CPU time. The sort must
be stable to serve as a unit: on one machine a sort that is not stable takes 29 or 100 ms, depending
on the processor's vector instructions, and a stable one 103 ms. Another figure is the time to
assemble the view from the brokers' snapshots and the ownership records.

The view's memory is what remains allocated after it was assembled, including the names. The last
statistics stay in the snapshots until a strategy reads them; only `transfer` does. On Pulsar's side
the memory is what LoadData with the same brokers, bundles, averages and last statistics adds to the
used heap after collections. There, equal names share one String, although a leader that reads
reports has several.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.agreement import same_cluster
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.peer.process import Peer
from benchmarks.synthetic import CLUSTER, NOW_MS, Columns, columns, holdings, snapshots
from trimtab.arrays import Floats
from trimtab.intake.assemble import assemble
from trimtab.placement import PLACERS
from trimtab.plan import Plan
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View

BROKERS: Final = 10_000
BUNDLES: Final = 100
"""Bundles of each broker."""
SEED: Final = 1
ROUNDS: Final = 5
SORTED: Final = 1_000_000
HEAP: Final = "4g"

_TOGETHER: Final = (
    ("trimtab", "least-predicted-usage"),
    ("avg", "avg"),
    ("threshold", "least-long-term-rate"),
    ("threshold", "least-resource-usage"),
    ("overload", "least-long-term-rate"),
    ("uniform", "round-robin"),
    ("transfer", "least-average-usage"),
)
"""Shedding and placement, as they go together."""
PAIRINGS: Final = (
    *_TOGETHER,
    *(("threshold", name) for name in PLACERS if name not in {each for _, each in _TOGETHER}),
)
"""The same, and every other placement with ThresholdShedder."""
ACTING: Final = {"avg.low_hits": 1, "avg.high_hits": 1, "transfer.hits": 0}
"""The first round does its work instead of counting hits."""
AT_MOST: Final = 20.0
AT_MOST_PLANNED: Final = 30.0
"""For the planner, which also chooses destinations and brings every broker within its target."""
AIM: Final = 8.0

_MOVED_MS: Final = NOW_MS - 600_000
_RESTING: Final = 1_000
_SAMPLES: Final = 2
"""One in so many bundles moved then."""


@dataclass(frozen=True, slots=True)
class Built:
    """A view, the CPU seconds of each time it was assembled, and the bytes it holds."""

    view: View
    seconds: list[float]
    allocated: int


def measure(folder: Path) -> list[Figure]:
    """Measure every pairing on one view, then what the view took."""
    made = columns(BROKERS, BUNDLES, SEED)
    built = build(made)
    return [
        *(plan_figure(built.view, *pairing) for pairing in PAIRINGS),
        figure(
            "plans.view_seconds",
            median(built.seconds),
            "CPU s",
            "assembling the view that all plans are made from",
            raw={"CPU s": built.seconds},
        ),
        memory_figure(made, built, folder),
    ]


def build(made: Columns) -> Built:
    """Assemble the view as the job would; its memory is measured apart, as tracing takes time."""
    reports, held = snapshots(made), holdings(made)
    seconds = [cpu_seconds(lambda: assemble(CLUSTER, reports, held)) for _ in range(ROUNDS)]
    gc.collect()
    tracemalloc.start()
    view, _ = assemble(CLUSTER, reports, held)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Built(replace(view, now_ms=NOW_MS), seconds, allocated)


def plan_figure(view: View, shedding: str, placement: str) -> Figure:
    """Time rounds from one state, each after a sort."""
    chosen = {"round.shedding": shedding, "round.placement": placement}
    settings = Settings.parse({**ACTING, **chosen})
    planned = shedding == "trimtab"
    state = RoundState(recent=dict.fromkeys(view.bundles.names[::_RESTING], _MOVED_MS))
    if planned:
        state = acquainted(view, state, settings)
    values = np.random.default_rng(SEED).random(SORTED)
    plans: list[Plan] = []

    def plan() -> None:
        plans.append(decide(view, state, settings, NOW_MS, np.random.default_rng(SEED))[0])

    turns = [(cpu_seconds(lambda: sort(values)), cpu_seconds(plan)) for _ in range(ROUNDS)]
    sorts, rounds = (list(side) for side in zip(*turns, strict=True))
    if not plans[0].moves:
        raise RuntimeError(f"{shedding} with {placement} planned nothing: {plans[0].skipped}")
    return figure(
        f"plans.{shedding}_{placement.replace('-', '_')}",
        median(rounds) / median(sorts),
        "argsorts",
        f"{1000 * median(rounds):,.0f} ms for {len(plans[0].moves):,} moves, one argsort "
        f"{1000 * median(sorts):,.0f} ms; aim {AIM:.0f}",
        Bar(Limit.AT_MOST, AT_MOST_PLANNED if planned else AT_MOST),
        {"plan CPU s": rounds, "argsort CPU s": sorts},
    )


def acquainted(view: View, state: RoundState, settings: Settings) -> RoundState:
    """The state after rounds a minute apart, the last a minute earlier, in each of which every
    bundle carried a little more or less: the planner does nothing before it knows the noise, and
    whether it lasts from sample to sample."""
    rng, looking = np.random.default_rng(SEED), settings.changed({"round.observe_only": True})
    for minutes in range(_SAMPLES, 0, -1):
        earlier, noise = 60_000 * minutes, rng.normal(0.0, 0.1, len(view.bundles.owner))
        before = replace(
            view,
            bundles=replace(
                view.bundles, reported=partial(np.multiply, view.bundles.stats, np.exp(noise))
            ),
            brokers=replace(view.brokers, reported_ms=view.brokers.reported_ms - earlier),
            now_ms=NOW_MS - earlier,
        )
        state = decide(before, state, looking, before.now_ms, rng)[1]
    return state


def memory_figure(made: Columns, built: Built, folder: Path) -> Figure:
    """The bytes of our view, compared with those of Pulsar's objects."""
    with Peer(made, {}, folder, HEAP) as peer:
        same_cluster(built.view, Settings().weights, peer.loaded.digest)
        heap = peer.loaded.heap_bytes
    bundles, mebibyte = len(made.bundles), 2**20
    return figure(
        "plans.view_memory",
        built.allocated / heap,
        "of Pulsar's heap",
        f"{built.allocated / bundles:,.0f} bytes a bundle here, {heap / bundles:,.0f} in Pulsar",
        Bar(Limit.AT_MOST, 0.25),
        {"trimtab MiB": [built.allocated / mebibyte], "Pulsar MiB": [heap / mebibyte]},
    )


def sort(values: Floats) -> None:
    """The unit of what a plan costs."""
    np.argsort(values, kind="stable")


def cpu_seconds(work: Callable[[], object]) -> float:
    """Call it; returns the CPU seconds that this process used."""
    started = time.process_time()
    work()
    return time.process_time() - started
