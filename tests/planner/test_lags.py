"""A load that goes on growing is met; noise, however long it lasts, is not taken for growth."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.planner.noises import BUNDLES, after, follow, noise
from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.wire.columns import pack, unpack

GROWS = np.arange(BUNDLES) < 12
GROWTH = 1.0 / 80
"""Of their first load, that those which grow gain in a minute: seven times as much in eight hours.
"""


def growing(minutes: int, *, until: int = 10**6, sign: float = 1.0) -> list[Floats]:
    """Logarithms, with noise, of bundles of which some have been growing since minute 30."""
    spent = np.clip(np.arange(minutes) - 30, 0, until - 30)
    return [
        0.3 * each + sign * GROWS * np.log1p(GROWTH * since)
        for each, since in zip(noise(0.5, minutes), spent, strict=True)
    ]


def error(found: Floats, true: Floats) -> float:
    """By which part the bundles that grow are overestimated, beside the others."""
    load = np.exp(true)
    whole = found.sum() / load.sum()
    return float(found[GROWS].sum() / whole / load[GROWS].sum()) - 1.0


@pytest.mark.parametrize("sign", [pytest.param(1.0, id="grows"), pytest.param(-1.0, id="falls")])
@pytest.mark.parametrize("minutes", [200, 240, 400])
def test_a_bundle_that_goes_on_growing_is_met(minutes: int, sign: float) -> None:
    """Its average is a tenth to a quarter behind all the time."""
    true = sign * GROWS * np.log1p(GROWTH * (minutes - 31))
    known = after(growing(minutes, sign=sign))
    assert abs(error(known.current, true)) < 0.06
    assert abs(error(known.level, true)) > 0.08


def test_growth_that_ends_is_not_followed_further() -> None:
    for minutes in (180, 200, 240, 300):
        true = GROWS * np.log1p(GROWTH * 120)
        assert error(after(growing(minutes, until=150)).current, true) < 0.06


@pytest.mark.parametrize("minutes", [5, 20, 60, 240])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95, 0.98])
def test_noise_is_no_growth(rho: float, minutes: int) -> None:
    known = after(list(noise(rho, minutes)))
    swing = known.current.std() / known.level.std()
    assert swing < 1.02
    assert np.mean(known.current != known.level) < 0.03


def test_heavy_tails_are_no_growth() -> None:
    known = after(list(noise(0.9, 240, tails=3)))
    assert np.mean(known.current != known.level) < 0.03


def test_a_leap_soon_after_another_is_no_growth() -> None:
    """Its samples count in part where outliers are common: till the shift is known they stay far
    above an average of few."""
    rng, known = np.random.default_rng(5), Estimates()
    for minute, each in enumerate(noise(0.5, 110), 1):
        outlier = (rng.random(BUNDLES) < 0.01) & ~GROWS
        leapt = 1.0 if minute <= 80 else 1.7 if minute <= 86 else 3.0
        made = 0.3 * each + np.log(4.0) * outlier + np.log(leapt) * GROWS
        known = follow(known, made, minute)
        assert (known.growing * known.behind)[GROWS].max() < 0.1


def test_what_is_known_of_a_bundle_that_grows_is_less_sure() -> None:
    """Where the growth counts, its noise counts too."""
    known = after(growing(300))
    still = after([0.3 * each for each in noise(0.5, 300)])
    wider = (known.spread / known.level**2)[GROWS] / (still.spread / still.level**2)[GROWS]
    assert np.median(wider) > 1.5


def test_a_state_from_before_growth_was_followed_is_read() -> None:
    stored = msgspec.msgpack.decode(pack(after(list(noise(0.5, 30)))))
    del stored["behind"], stored["growing"]
    again = unpack(msgspec.msgpack.encode(stored), Estimates)
    np.testing.assert_array_equal(again.current, again.level)


def test_what_began_with_nothing_counts_no_more_than_it_carries() -> None:
    """Counters of a fifth of the bundles read 0 at first, as those of brokers that just started."""
    known, begun = Estimates(), np.arange(BUNDLES) >= BUNDLES // 5
    for minute, each in enumerate(noise(0.0, 8), 1):
        traffic = np.where(begun | (minute > 1), np.exp(each), 1e-12)
        known = follow(known, np.log(traffic), minute)
        assert known.current[~begun].sum() < 0.21


@pytest.mark.parametrize("part", [0.6, 0.9])
def test_what_began_with_nothing_makes_no_other_larger(part: float) -> None:
    """If most bundles did, the others did not get busier by as much: they were all there was."""
    known, begun = Estimates(), np.arange(BUNDLES) >= part * BUNDLES
    for minute, each in enumerate(noise(0.0, 8), 1):
        traffic = np.where(begun | (minute > 1), np.exp(each / 10), 1e-12)
        known = follow(known, np.log(traffic), minute)
        assert known.current.sum() == pytest.approx(1.0, abs=0.05)
