"""What bundles that leap together say of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.arrays import Floats
from trimtab.load_model.estimating.events import Leaps, draw_leaps

SIGMA = 0.5


def leaps(factors: Sequence[float], samples: float = 1.0, variance: float = 1.0) -> Leaps:
    """From a level of 1; ``factors`` are logarithms."""
    columns = (np.zeros(len(factors)) + each for each in (samples, variance))
    return Leaps(np.ones(len(factors)), np.exp(factors), *columns)


def test_by_hand() -> None:
    """They vary by 6 about their mean of 1, 4 more than chance: 2 of variance are their own."""
    level, worth = draw_leaps(leaps([0.0, 0.0, 3.0]))
    np.testing.assert_allclose(np.log(level), [1 / 3, 1 / 3, 7 / 3])
    np.testing.assert_allclose(worth, 1 / (2 / 3 + 1 / 27))


def test_what_differs_by_less_than_chance_is_the_same() -> None:
    level, worth = draw_leaps(leaps([1.0, 1.5, 2.0], samples=2.0))
    np.testing.assert_allclose(level, math.exp(1.5))
    np.testing.assert_allclose(worth, 6.0)


def test_what_leaps_each_in_its_own_way_stays_as_it_was_found() -> None:
    factors = [-3.0, 0.7, 4.0]
    level, worth = draw_leaps(leaps(factors, samples=3.0, variance=0.01))
    np.testing.assert_allclose(np.log(level), factors, atol=0.01)
    np.testing.assert_allclose(worth, 3.0, rtol=0.01)


def test_the_better_known_says_more_and_changes_less() -> None:
    found = Leaps(np.ones(3), np.exp([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 8.0]), np.ones(3))
    level, _ = draw_leaps(found)
    np.testing.assert_allclose(np.log(level), 0.8)


@pytest.mark.parametrize("alike", [0.0, 0.3, 2.0])
def test_levels_are_nearer_the_truth(alike: float) -> None:
    """Twelve bundles get about six times as busy, and two samples are known of each."""
    rng = np.random.default_rng(7)
    alone, together = [], []
    for _ in range(200):
        true = math.log(6) + alike * rng.standard_normal(12)
        noise = np.exp(SIGMA * rng.standard_normal((2, 12)) - SIGMA**2 / 2)
        after = np.exp(true) * noise.mean(axis=0)
        found = Leaps(np.ones(12), after, np.full(12, 2.0), np.full(12, SIGMA**2))
        alone.append(_error(after, true))
        together.append(_error(draw_leaps(found)[0], true))
    gained = float(np.mean(alone) / np.mean(together))
    assert gained > {0.0: 5.0, 0.3: 1.4, 2.0: 0.98}[alike]


def _error(level: Floats, true: Floats) -> float:
    return float(np.mean((np.log(level) - true) ** 2))


COLUMN = st.floats(1e-6, 1e6)


@given(st.lists(st.tuples(COLUMN, COLUMN, st.floats(1, 50), st.floats(2.5e-5, 100)), min_size=2))
def test_levels_stay_among_the_factors_and_are_worth_no_less(
    rows: list[tuple[float, float, float, float]],
) -> None:
    found = Leaps(*np.array(rows).T)
    level, worth = draw_leaps(found)
    factor, now = np.log(found.after / found.before), np.log(level / found.before)
    assert np.isfinite(level).all()
    assert ((factor.min() - 1e-6 <= now) & (now <= factor.max() + 1e-6)).all()
    assert (worth >= found.samples * (1 - 1e-9)).all()
    assert (worth <= np.maximum(found.samples, 20.0)).all()
