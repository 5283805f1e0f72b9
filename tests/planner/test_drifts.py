"""Namespaces whose load grows or falls steadily are followed, and the noise of bundles is not."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.drifts import find_drifts
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.odds import bound

NAMESPACES, EACH = 10, 12
COUNT = NAMESPACES * EACH
NAMESPACE = np.arange(COUNT, dtype=np.int32) % NAMESPACES
FIRST = NAMESPACE == 0
HALF_LIFE_S = 1800.0
NOISE = 0.1


def follow(factor: Floats, seed: int = 0, namespace: bool = True) -> tuple[Estimates, Floats]:
    """The estimates after minutes in which the first namespace's load is multiplied by (k,)
    ``factor``, and the true shares at the end; where that is 0 it does not exist."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0.0, 0.5, COUNT)
    known, load = Estimates(), size
    for minute, each in enumerate(factor, 1):
        load = np.where(FIRST, each, 1.0) * size
        traffic, here = load * np.exp(NOISE * rng.standard_normal(COUNT)), load > 0
        samples = Samples(
            keys=np.flatnonzero(here).astype(np.uint64),
            traffic=traffic[here],
            at_ms=np.full(np.count_nonzero(here), 60_000 * minute, np.int64),
            namespace=NAMESPACE[here] if namespace else None,
        )
        known = follow_samples(known, samples, HALF_LIFE_S, bound(COUNT, 60.0, 1.0))
    return known, load / load.sum()


def behind(known: Estimates, true: Floats) -> float:
    """By which factor the first namespace is estimated too large."""
    return float(known.current[FIRST].sum() / known.current.sum() / true[FIRST].sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "hourly", [pytest.param(2.0, id="doubles"), pytest.param(0.5, id="halves")]
)
def test_a_tenant_that_grows_or_falls_for_hours_is_followed(hourly: float, seed: int) -> None:
    minutes = np.arange(150)
    factor = hourly ** (np.clip(minutes - 30, 0, None) / 60)
    assert behind(*follow(factor, seed)) == pytest.approx(1.0, abs=0.12)


def test_what_it_lags_behind_is_no_noise() -> None:
    """It would seem uncertain, and a plan would wait for a range that it explains."""
    factor = 2.0 ** (np.clip(np.arange(150) - 30, 0, None) / 60)
    still, _ = follow(np.ones(150))
    growing, _ = follow(factor)
    assert np.median(growing.variance[FIRST]) < 2.0 * np.median(still.variance[FIRST])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("minutes", [10, 30])
def test_a_new_tenant_that_fills_is_followed(minutes: int, seed: int) -> None:
    """Its samples leap again and again. If that were noise, its bundles would be known no sooner
    than an average forgets, and the noise of all others would seem to last."""
    still, _ = follow(np.ones(90), seed)
    fills = np.clip((np.arange(90) - 60) / minutes, 0.05, 1.0) * (np.arange(90) >= 60)
    filled, true = follow(fills, seed)
    assert behind(filled, true) == pytest.approx(1.0, abs=0.2)
    assert np.median(filled.variance[FIRST]) < 3.0 * np.median(still.variance[FIRST])
    assert np.median(filled.memory) < np.median(still.memory) + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_the_noise_of_bundles_moves_no_level(seed: int) -> None:
    with_namespaces, without = follow(np.ones(300), seed), follow(np.ones(300), seed, False)
    np.testing.assert_allclose(with_namespaces[0].level, without[0].level, rtol=0.02)


def drift(residual: Floats, news: Bools | None = None) -> float:
    """What is believed of the first namespace's drift."""
    reported = np.ones(COUNT, np.bool_) if news is None else news
    found = find_drifts(residual, reported, NAMESPACE)
    return 0.0 if found is None else float(found.by[0])


def noise(deviation: float = NOISE) -> Floats:
    return np.random.default_rng(7).normal(0.0, deviation, COUNT)


def test_bundles_that_lag_the_same_way_have_drifted() -> None:
    assert 0.1 < drift(noise() + 0.2 * FIRST) <= 0.25


def test_one_bundle_that_leaps_is_no_drift() -> None:
    assert drift(noise() + 2.0 * (np.arange(COUNT) == 0)) == 0.0


def test_a_namespace_that_leaps_is_none_either() -> None:
    """It may be a burst, and whether those last is learned; but it is no noise of its bundles."""
    found = find_drifts(noise() + 1.0 * FIRST, np.ones(COUNT, np.bool_), NAMESPACE)
    assert found is not None
    assert not found.by.any()
    np.testing.assert_array_equal(found.leaping, FIRST)


def test_few_bundles_tell_nothing() -> None:
    few = FIRST & (np.arange(COUNT) < 5 * NAMESPACES)
    assert drift(noise(0.01) + 0.2 * FIRST, few | ~FIRST) == 0.0


def test_bundles_of_which_no_sample_is_new_tell_nothing() -> None:
    assert drift(noise() + 0.2 * FIRST, ~FIRST) == 0.0


@pytest.mark.parametrize(
    ("factor", "later"),
    [
        pytest.param([1.0] + [3.0] * 60, 1, id="nothing is known of their noise"),
        pytest.param([1.0] * 15 + [1 / 3] + [3.0] * 60, 16, id="nor of that of new bundles"),
    ],
)
def test_tenants_that_all_leap_are_followed(factor: list[float], later: int) -> None:
    """No sample then tells of noise. Of two tenants with half of the load each, one gets three
    times as busy, and the other gets idle by as much. The last bundle of each comes ``later``."""
    tenant, known = np.arange(14, dtype=np.int32) % 2, Estimates()
    for minute, each in enumerate(factor, 1):
        here = np.arange(14 if minute >= later else 12)
        samples = Samples(
            keys=here.astype(np.uint64),
            traffic=np.array([each, 1 / each])[tenant[here]] * (1.0 + 0.01 * np.cos(minute * here)),
            at_ms=np.full(len(here), 60_000 * minute, np.int64),
            namespace=tenant[here],
        )
        known = follow_samples(known, samples, HALF_LIFE_S, bound(len(here), 60.0, 1.0))
    assert known.level[tenant == 0].sum() == pytest.approx(0.9, abs=0.05)
    assert known.level.sum() == pytest.approx(1.0, abs=0.05)
