"""What leapt in a fleet's first minutes is found by its first sample, once noise is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trimtab.load_model.estimating.early_leaps import find_early_leaps, keep_first
from trimtab.load_model.estimating.estimates import Estimates

CALM = 9
"""Bundles beside the one that is looked at, each of a load of 1."""
SAMPLES = 6.0


def young(
    first: float, level: float, last: float, noise: float = 0.05, memory: float = 0.0
) -> Estimates:
    """A fleet after six samples: of one bundle the first one, their average, and the newest one."""
    ones = np.ones(CALM + 1)

    def column(value: float) -> np.ndarray:
        return np.array([value, *ones[1:]])

    return Estimates(
        keys=np.arange(CALM + 1, dtype=np.uint64),
        at_ms=np.zeros(CALM + 1, np.int64),
        sample=column(last),
        level=column(level),
        weight=SAMPLES * ones,
        squares=SAMPLES * ones,
        variance=noise**2 * ones,
        seen=(SAMPLES - 1) * ones,
        up=0 * ones,
        down=0 * ones,
        rise=0 * ones,
        rising=0 * ones,
        fall=0 * ones,
        falling=0 * ones,
        age=np.inf * ones,
        last=column(last),
        moved=noise**2 * ones,
        memory=memory * ones,
        outliers=0 * ones,
        behind=0 * ones,
        growing=0 * ones,
        first=column(first),
    )


def found(known: Estimates) -> list[int]:
    return np.flatnonzero(np.isfinite(find_early_leaps(known).age)).tolist()


@pytest.mark.parametrize(
    ("first", "level", "last", "age"),
    [
        pytest.param(1.0, 2.0, 3.0, 3, id="half of the average is from before"),
        pytest.param(3.0, 2.0, 1.0, 3, id="and so of what fell"),
        pytest.param(1.0, 2.0, 3.1, 3, id="whole samples"),
        pytest.param(1.0, 1.6, 30.0, 1, id="the newest one at least"),
        pytest.param(1.0, 3.0, 2.0, 6, id="all of them, if the newest one is lower than the mean"),
        pytest.param(1.0, 2.0, 1.0, 6, id="and if it is as the first"),
    ],
)
def test_how_long_ago_it_leapt_follows_from_the_average(
    first: float, level: float, last: float, age: int
) -> None:
    leapt = find_early_leaps(young(first, level, last))
    assert leapt.age[0] == age
    assert np.isinf(leapt.age[1:]).all()
    assert leapt.first[0] == -first


def test_what_lasting_noise_explains_is_no_leap() -> None:
    """Twice the first sample is seven deviations of noise without memory, and two of noise that
    has a memory of 0.9, of which six samples show a third."""
    assert found(young(1.0, 2.0, 2.0, noise=0.1)) == [0]
    assert found(young(1.0, 2.0, 2.0, noise=0.1, memory=0.9)) == []


def test_while_the_noise_of_a_bundle_is_hardly_known_nothing_is_a_leap() -> None:
    known = young(1.0, 2.0, 3.0)
    assert found(replace(known, seen=np.full(CALM + 1, 4.0))) == []
    assert found(known) == [0]


def test_ten_times_almost_nothing_is_no_leap() -> None:
    assert found(young(1e-5, 1e-4, 1e-4)) == []


def test_a_leap_is_news_once() -> None:
    leapt = find_early_leaps(young(1.0, 2.0, 3.0))
    assert keep_first(leapt, leapt.last).tolist() == [0.0, *[1.0] * CALM]


def test_first_samples_are_kept_until_ten_residuals_are_known() -> None:
    known = young(1.0, 2.0, 3.0)
    assert keep_first(replace(known, seen=known.seen + 4.9), known.last)[0] == 1.0
    assert keep_first(replace(known, seen=known.seen + 5.0), known.last)[0] == 0.0
