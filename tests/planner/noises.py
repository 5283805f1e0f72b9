"""Samples of bundles whose loads only swing by chance, and what is estimated from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.estimates import JUST, Estimates, Samples
from trimtab.load_model.estimating.fleet_events import count_event
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.odds import bound

MINUTE_MS = 60_000
BUNDLES = 300
SIGMA = 0.3


def noise(rho: float, minutes: int, tails: int = 0, seed: int = 1) -> Iterator[Floats]:
    """(BUNDLES,) logarithms, a minute apart; AR(1), its innovations normal or Student's t."""
    rng = np.random.default_rng(seed)

    def draw() -> Floats:
        if not tails:
            return rng.standard_normal(BUNDLES)
        drawn: Floats = rng.standard_t(tails, BUNDLES) * (1 - 2 / tails) ** 0.5
        return drawn

    now = draw()
    for _ in range(minutes):
        yield SIGMA * now
        now = rho * now + (1 - rho**2) ** 0.5 * draw()


def follow(
    known: Estimates, logarithms: Floats, minute: int, heard: Bools | None = None
) -> Estimates:
    """The estimates after a minute's reports; of those not ``heard`` the last ones stand."""
    at_ms = np.full(BUNDLES, minute * MINUTE_MS, np.int64)
    traffic = np.exp(logarithms)
    if heard is not None and len(known.keys):
        at_ms = np.where(heard, at_ms, known.at_ms)
        traffic = np.where(heard, traffic, known.sample)
    samples = Samples(np.arange(BUNDLES, dtype=np.uint64), traffic, at_ms)
    return follow_samples(known, samples, 1800.0, bound(BUNDLES, 60.0, 1.0))


def after(logarithms: list[Floats]) -> Estimates:
    known = Estimates()
    for minute, each in enumerate(logarithms, 1):
        known = follow(known, each, minute)
    return known


def just_leapt(known: Estimates) -> int:
    """How many bundles have."""
    return int(np.count_nonzero(known.age <= JUST))


def in_event(known: Estimates) -> bool:
    """Whether those are more than leap together by chance."""
    return count_event(known, np.ones(len(known.keys), np.bool_)) > 0
