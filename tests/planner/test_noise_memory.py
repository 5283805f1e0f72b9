"""Noise that lasts, and noise with heavy tails: measured, paid for, and not taken for events."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.noises import BUNDLES, after, follow, in_event, noise
from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import UNKNOWN, Estimates
from trimtab.load_model.estimating.noise_memory import MOST, find_memory, remaining
from trimtab.load_model.estimating.outlying import Outlying
from trimtab.load_model.odds import TOGETHER, together
from trimtab.wire.columns import pack, unpack


def stupid(logarithms: list[Floats]) -> float:
    """The correlation of each value with the next; the noise is known to have mean 0."""
    columns = np.array(logarithms)
    return float((columns[1:] * columns[:-1]).sum() / (columns[:-1] ** 2).sum())


@pytest.mark.parametrize(("rho", "error"), [(0, 0.04), (0.5, 0.04), (0.8, 0.03), (0.95, 0.02)])
def test_the_memory_is_that_of_the_noise(rho: float, error: float) -> None:
    logarithms = list(noise(rho, 300))
    known = after(logarithms)
    assert np.median(known.memory) == pytest.approx(stupid(logarithms), abs=error)


@pytest.mark.parametrize("rho", [0.5, 0.95])
def test_lost_reports_hide_no_memory(rho: float) -> None:
    """Of every five reports one is lost: the mean correlation of those heard is a little lower."""
    rng, known = np.random.default_rng(2), Estimates()
    for minute, each in enumerate(noise(rho, 300), 1):
        known = follow(known, each, minute, rng.random(BUNDLES) < 0.8)
    assert rho - 0.12 < np.median(known.memory) < rho + 0.04


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 0.95])
def test_the_chance_is_what_levels_differ_by(rho: float) -> None:
    """Of bundles alike, the variance of their levels; it is not less, and not far more."""
    found = [after(list(noise(rho, 240, seed=seed))) for seed in range(3)]
    true = np.mean([np.var(known.level) for known in found])
    assert 0.85 < np.mean([known.chance for known in found]) / true < 1.6


def test_a_fleet_not_known_yet_is_taken_for_one_whose_noise_lasts() -> None:
    for samples in (2, 3, 5, 10, 30):
        known = after(list(noise(0.98, samples)))
        assert np.median(known.memory) > 0.9
        white = after(list(noise(0.0, samples)))
        assert samples < 5 or np.median(white.memory) < 0.25


def test_what_does_not_move_has_no_memory() -> None:
    assert not after([np.zeros(BUNDLES)] * 3).memory.any()


def test_a_tide_does_not_count_as_lasting_noise() -> None:
    """Smooth waves move the level far more than noise of any memory would, step for step."""
    phase = np.linspace(0, 2 * np.pi, BUNDLES)
    tide = [0.5 * np.sin(phase + minute * 2 * np.pi / 480) for minute in range(960)]
    assert np.median(after(tide).memory) == 0


def test_lasting_noise_makes_no_level_shift() -> None:
    known = Estimates()
    for minute, each in enumerate(noise(0.95, 300), 1):
        known = follow(known, each, minute)
        assert not known.stepped.any()


def test_in_lasting_noise_a_leap_is_found_at_once() -> None:
    *past, last = noise(0.95, 121)
    known = after(past)
    last[7] += np.log(6.0)
    assert np.flatnonzero(follow(known, last, 121).stepped).tolist() == [7]


def test_outliers_are_no_event_where_they_are_common() -> None:
    """Student's t with 3 degrees of freedom: of 300 bundles some leap in every minute."""
    known = Estimates()
    for minute, each in enumerate(noise(0.0, 240, tails=3), 1):
        known = follow(known, each, minute)
        assert not in_event(known)
    assert known.outlying.common
    assert known.level.max() / known.level.min() < 2


def test_many_that_leap_are_an_event_even_there() -> None:
    *past, last = noise(0.0, 241, tails=3)
    known = after(past)
    for minute in range(241, 247):
        leapt = last.copy()
        leapt[:100] += np.log(6.0)
        known = follow(known, leapt, minute)
    assert in_event(known)


def test_a_few_are_an_event_where_outliers_are_rare() -> None:
    assert together(0.0) == TOGETHER
    assert together(29.0) > 29 + 4 * 29**0.5
    quiet = Outlying(bundles=1200, outliers=60.0, samples=1e6)
    assert quiet.rare
    assert not quiet.common
    assert not quiet._replace(outliers=6000.0).rare
    assert quiet._replace(outliers=6000.0).common


def test_a_state_from_before_memories_were_kept_is_read() -> None:
    known = after(list(noise(0.5, 30)))
    stored = msgspec.msgpack.decode(pack(known))
    for name in ("last", "moved", "memory", "outliers"):
        del stored[name]
    again = unpack(msgspec.msgpack.encode(stored), Estimates)
    np.testing.assert_array_equal(again.level, known.level)
    assert (again.memory == MOST).all()
    assert (again.chance >= known.chance).all()
    *_, last = noise(0.5, 40)
    assert np.isfinite(follow(again, last, 31).chance).all()


columns = st.integers(1, 20).flatmap(
    lambda m: st.tuples(
        *[st.lists(st.floats(2.5e-5, 100), min_size=m, max_size=m)] * 2,
        st.lists(st.floats(0, 1000), min_size=m, max_size=m),
        st.lists(st.floats(0, 100), min_size=m, max_size=m),
    )
)


@given(columns)
def test_whatever_is_known_the_memory_is_sound(
    given: tuple[list[float], list[float], list[float], list[float]],
) -> None:
    variance, moved, seen, weight = map(np.array, given)
    memory = find_memory(variance, moved, seen, weight)
    assert ((memory >= 0) & (memory <= MOST)).all()
    left = remaining(memory, weight, np.minimum(weight, 1.0))
    assert ((left >= 0) & (left <= 1)).all()


def test_what_lasting_noise_has_not_shown_yet_is_bounded_as_on_first_reports() -> None:
    """Loads that change by a quarter a minute might wander without end; nothing shows that yet."""
    rng = np.random.default_rng(2)
    walk = np.cumsum(0.25 * rng.standard_normal((6, BUNDLES)), axis=0)
    known = after(list(walk))
    shown = np.maximum(known.variance, UNKNOWN)
    assert (known.spread <= known.level**2 * np.expm1(shown) * (1 + 1e-9)).all()
