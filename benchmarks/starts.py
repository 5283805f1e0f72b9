"""trimtab's planner from five starts at two sizes: a round that plans, and one without moves.

`trimtab.round.decide.decide` is timed with trimtab's shedder and placement, all other settings at
their defaults, for 1,000 and for 10,000 brokers with 100 bundles each. The unit is one stable
`numpy.argsort` of as many random float64 as there are bundles, done before every round. Both are
medians of this process's CPU time. A round grants at most 10,000 moves, and the planner plans at
most four for a broker at a time. Where a start needs more, the following rounds continue.

* `random`: every bundle is on a broker drawn at random.
* `skewed`: every broker has 100 bundles, and a usage drawn from 20 to 70 %.
* `two_thirds`: two thirds of the brokers carry all bundles, drawn at random.
* `empty_rack`: one broker in ten is empty, like a rack that was just added.
* `pareto`: like `random`, but loads are Pareto with shape 1.2, each at most an average broker's
  load.

In all other starts loads are drawn evenly from 1 to 21. `steady` is a round of the same bundles in
which nothing has to move: they were placed in descending order, each on the broker with the least
load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from heapq import heapreplace
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.plans import acquainted, cpu_seconds, sort
from benchmarks.synthetic import CLUSTER, NOW_MS, carrying, holdings, snapshots
from trimtab.arrays import Floats, Ints
from trimtab.intake.assemble import assemble
from trimtab.plan import Plan
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View

SIZES: Final = (1_000, 10_000)
BUNDLES: Final = 100
"""A broker, on average."""
SEED: Final = 1
ROUNDS: Final = 3
SETTINGS: Final = Settings.parse(
    {"round.shedding": "trimtab", "round.placement": "least-predicted-usage"}
)
AT_MOST: Final = 30.0
AT_MOST_STEADY: Final = 5.0
BARRED: Final = 10_000
"""Brokers from which the bars hold: with fewer the planner tries more plans."""
_HOTTEST: Final = 0.95
_MEAN: Final = 0.45

Loads = tuple[Ints, Floats]
"""(m,) the broker of each bundle and its load."""


def random(brokers: int, rng: np.random.Generator) -> Loads:
    """Each bundle on a broker drawn at random."""
    return rng.integers(0, brokers, brokers * BUNDLES), _even(brokers, rng)


def skewed(brokers: int, rng: np.random.Generator) -> Loads:
    """Brokers with equally many bundles and loads drawn at random."""
    owner, load = np.repeat(np.arange(brokers), BUNDLES), _even(brokers, rng)
    drawn = 0.2 + 0.5 * rng.random(brokers)
    return owner, load * (drawn / np.bincount(owner, load))[owner]


def two_thirds(brokers: int, rng: np.random.Generator) -> Loads:
    """A third of the brokers is empty."""
    return rng.integers(0, 2 * brokers // 3, brokers * BUNDLES), _even(brokers, rng)


def empty_rack(brokers: int, rng: np.random.Generator) -> Loads:
    """A tenth of the brokers is empty."""
    return rng.integers(0, brokers - brokers // 10, brokers * BUNDLES), _even(brokers, rng)


def pareto(brokers: int, rng: np.random.Generator) -> Loads:
    """Few bundles carry most of the load."""
    load = 1.0 + rng.pareto(1.2, brokers * BUNDLES)
    return rng.integers(0, brokers, len(load)), np.minimum(load, load.sum() / brokers)


STARTS: Final[Mapping[str, Callable[[int, np.random.Generator], Loads]]] = {
    "random": random,
    "skewed": skewed,
    "two_thirds": two_thirds,
    "empty_rack": empty_rack,
    "pareto": pareto,
}


def measure(_: Path) -> list[Figure]:
    """Measure every start at every size."""
    return [each for size in SIZES for name in STARTS for each in figures(name, size)]


def figures(name: str, brokers: int) -> Iterator[Figure]:
    """The figures of a start, and of the same bundles at rest."""
    owner, load = STARTS[name](brokers, np.random.default_rng(SEED))
    sides = (("", owner, AT_MOST), ("_steady", dealt_out(load, brokers), AT_MOST_STEADY))
    for suffix, where, most in sides:
        plans, turns = rounds(view_of(where, load, brokers))
        if bool(plans[0].moves) == bool(suffix):
            raise RuntimeError(f"{name}{suffix}: {len(plans[0].moves)} moves")
        sorts, taken = (list(side) for side in zip(*turns, strict=True))
        yield figure(
            f"starts.{name}_{brokers}{suffix}",
            median(taken) / median(sorts),
            "argsorts",
            f"{median(taken):.3f} CPU s for {len(plans[0].moves):,} moves, one argsort "
            f"{1000 * median(sorts):.3g} ms",
            Bar(Limit.AT_MOST, most) if brokers >= BARRED else None,
            {"plan CPU s": taken, "argsort CPU s": sorts},
        )


def rounds(view: View) -> tuple[list[Plan], list[tuple[float, float]]]:
    """The plans of rounds from one state, and the CPU seconds of each and of a sort before it."""
    state, plans = acquainted(view, RoundState(), SETTINGS), list[Plan]()
    values = np.random.default_rng(SEED).random(len(view.bundles.owner))

    def plan() -> None:
        plans.append(decide(view, state, SETTINGS, NOW_MS, np.random.default_rng(SEED))[0])

    turns = [(cpu_seconds(lambda: sort(values)), cpu_seconds(plan)) for _ in range(ROUNDS)]
    return plans, turns


def view_of(owner: Ints, load: Floats, brokers: int) -> View:
    """The view the job would assemble; usage is in proportion to the load."""
    order = np.argsort(owner, kind="stable")
    owner, load = owner[order], load[order]
    carried = np.bincount(owner, load, brokers)
    level = min(_MEAN / carried.mean(), _HOTTEST / carried.max())
    made = carrying(owner, load, level * carried)
    return replace(assemble(CLUSTER, snapshots(made), holdings(made))[0], now_ms=NOW_MS)


def dealt_out(load: Floats, brokers: int) -> Ints:
    """(m,) a broker for each bundle, the largest first: the one that carries the least."""
    owner = np.empty(len(load), np.int64)
    carried = [(0.0, broker) for broker in range(brokers)]
    for row in np.argsort(-load, kind="stable").tolist():
        least, broker = carried[0]
        owner[row] = broker
        heapreplace(carried, (least + float(load[row]), broker))
    return owner


def _even(brokers: int, rng: np.random.Generator) -> Floats:
    return 1.0 + 20.0 * rng.random(brokers * BUNDLES)
