"""Counts how often noise alone makes the planner plan, on a balanced fleet.

Each bundle's load is its level times e^(sigma N), where N remembers its past, N' = rho N +
sqrt(1 - rho²) e, and e is normal or Student's t, of variance 1. All brokers carry alike, so every
plan is false. Nothing is moved; a plan is a time in which the trigger asks for moves, and another
begins when it has not asked for a half-life.

`python -m simulation.false_plans` counts them over ten months of several kinds of noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import typer

from trimtab.arrays import Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.fleet_events import count_event
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.odds import bound, deviations

INTERVAL_S: Final = 60
HALF_LIFE_S: Final = 1800.0
TARGET: Final = 0.05
MEAN: Final = 0.45
"""Usage of every broker."""
_NAMESPACES: Final = 10
_FARTHEST: Final = 20.0
"""Cap on the logarithm of a load's factor: Student's t has no bounds."""
_NOISES: Final = (
    *((0.0, 0.1), (0.0, 0.3), (0.5, 0.2), (0.8, 0.3)),
    *((0.95, 0.2), (0.95, 0.3), (0.98, 0.3)),
)
"""Rho and sigma of each noise that is counted, each with every kind of tails."""
_TAILS: Final = (0, 5, 3)


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a fleet: ``brokers`` brokers with ``each`` bundles on each."""

    rho: float
    """Correlation of a minute's logarithm with the next."""
    sigma: float
    tails: int = 0
    """Degrees of freedom of Student's t; 0: normal."""
    brokers: int = 10
    each: int = 30
    seed: int = 1


def count_false_plans(noise: Noise, minutes: int, *, warm_up: int = 0) -> int:
    """Count the plans made in ``minutes`` minutes after the warm-up, for a fleet in which only
    noise happens. The load model knows nothing of the fleet when it starts."""
    rng = np.random.default_rng(noise.seed)
    level, where = _balanced(noise, rng)
    keys, n = np.arange(len(level), dtype=np.uint64), noise.brokers
    namespace = np.arange(len(level), dtype=np.int32) % _NAMESPACES
    limit, k = bound(len(keys), INTERVAL_S, 1.0), deviations(n, INTERVAL_S, 1.0)
    drawn, fresh = _draw(noise, rng), (1.0 - noise.rho**2) ** 0.5
    known, plans, asked = Estimates(), 0, -np.inf
    for minute in range(1, minutes + warm_up + 1):
        traffic = level * np.exp(np.clip(noise.sigma * drawn, -_FARTHEST, _FARTHEST))
        at_ms = np.full(len(keys), minute * INTERVAL_S * 1000, np.int64)
        samples = Samples(keys, traffic, at_ms, namespace)
        known = follow_samples(known, samples, HALF_LIFE_S, limit)
        drawn = noise.rho * drawn + fresh * _draw(noise, rng)
        if known.known and _asks(known, where, n, k):
            apart = (minute - asked) * INTERVAL_S > HALF_LIFE_S
            plans += bool(apart and minute > warm_up)
            asked = minute
    return plans


def _asks(known: Estimates, where: Ints, brokers: int, k: float) -> bool:
    """Whether any two brokers differ by more than is accepted (`trimtab.planner.trigger`)."""
    whole = MEAN * brokers
    usage = whole * np.bincount(where, known.current, brokers)
    if usage.max() - usage.min() <= TARGET:
        return False
    variance = whole**2 * np.bincount(where, known.chance, brokers)
    deviation = np.sqrt(np.add.outer(variance, variance))
    event = count_event(known, np.ones(len(where), np.bool_)) > 0
    accepted = 0.0 * deviation if event else k * deviation
    return bool((np.subtract.outer(usage, usage) > np.maximum(TARGET, TARGET + accepted)).any())


def _balanced(noise: Noise, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Levels of the bundles, and the broker of each, heaviest first to the one that carries
    least."""
    level = np.sort(rng.lognormal(0.0, 0.5, noise.brokers * noise.each))[::-1]
    where, carried = np.zeros(len(level), np.int64), np.zeros(noise.brokers)
    for bundle, load in enumerate(level.tolist()):
        where[bundle] = np.argmin(carried)
        carried[where[bundle]] += load
    return level, where


def _draw(noise: Noise, rng: np.random.Generator) -> Floats:
    size = noise.brokers * noise.each
    if not noise.tails:
        return rng.standard_normal(size)
    drawn: Floats = rng.standard_t(noise.tails, size) * (1.0 - 2.0 / noise.tails) ** 0.5
    return drawn


def main(days: float = 300.0, fleets: int = 1) -> None:
    """Count the false plans of each noise, over so many days of each of ``fleets``."""
    typer.echo("| rho | sigma | tails | plans | months |\n|---:|---:|---|---:|---:|")
    for tails, (rho, sigma) in product(_TAILS, _NOISES):
        made = (Noise(rho, sigma, tails, seed=seed) for seed in range(1, fleets + 1))
        plans = sum(count_false_plans(noise, round(days * 1440)) for noise in made)
        kind = f"t, {tails}" if tails else "normal"
        typer.echo(f"| {rho} | {sigma} | {kind} | {plans} | {days * fleets / 30:.3g} |")


if __name__ == "__main__":
    typer.run(main)
