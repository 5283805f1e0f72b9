"""What is taken for a shift of a bundle's level, and where its level begins again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planner.noises import BUNDLES, after, follow
from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.odds import bound

HOUR = 60
ONE = np.arange(BUNDLES) == 7


def white(minutes: int, sigma: float, seed: int = 1) -> list[Floats]:
    return list(sigma * np.random.default_rng(seed).standard_normal((minutes, BUNDLES)))


@pytest.mark.parametrize(
    ("factor", "leaps"), [(1.4, False), (1.6, True), (1 / 1.4, False), (1 / 1.6, True)]
)
def test_a_leap_is_a_change_by_half_at_least(factor: float, leaps: bool) -> None:
    """A smaller shift is followed as soon, but does not count as an event's beginning."""
    known = after(white(HOUR, 0.01))
    for minute, each in enumerate(white(3, 0.01, seed=2), HOUR + 1):
        known = follow(known, each + np.log(factor) * ONE, minute)
    assert known.level[7] / np.median(known.level) == pytest.approx(factor, rel=0.02)
    assert np.flatnonzero(np.isfinite(known.age)).tolist() == ([7] if leaps else [])


def test_chance_shifts_levels_no_more_often_than_allowed() -> None:
    """Nor a tenth as often: real shifts would be found late."""
    count, minutes, allowed, rng = 600, 480, 100.0, np.random.default_rng(3)
    known, shifts = Estimates(), 0
    # Of each false plan that is allowed two shifts in five are.
    limit = bound(count, 60.0, allowed / 0.4 * 30 * 24 * 60 / minutes)
    for minute in range(1, 2 * HOUR + minutes + 1):
        samples = Samples(
            keys=np.arange(count, dtype=np.uint64),
            traffic=np.exp(0.2 * rng.standard_normal(count)),
            at_ms=np.full(count, 60_000 * minute, np.int64),
        )
        before, known = known, follow_samples(known, samples, 1800.0, limit)
        if minute > 2 * HOUR:
            shifts += int(np.count_nonzero(known.weight < before.weight / 2))
    assert allowed / 10 < shifts < allowed


def test_a_report_from_long_before_the_last_one_changes_nothing() -> None:
    """The clock of a broker was set."""
    known = after(white(HOUR, 0.1))
    assert follow(known, np.ones(BUNDLES), -60 * 24 * 365) == known
