"""What is taken for a shift of a bundle's level, and where its level begins again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planner.noises import BUNDLES, after, follow, noise
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


def test_what_is_not_heard_again_stays_as_it_is_known() -> None:
    """All but the memory of its noise, which is the fleet's too."""
    heard = np.arange(BUNDLES) % 2 == 0
    known = follow(after(white(HOUR, 0.1)), np.log(6.0) * ONE, HOUR + 1)
    assert known.age[7] == 1
    later = follow(known, white(1, 0.1, seed=2)[0] + np.log(6.0) * ONE, HOUR + 2, heard)
    assert (later.level != known.level)[heard].all()
    for name in ("level", "weight", "squares", "variance", "seen", "age", "last", "behind"):
        same = getattr(later, name) == getattr(known, name)
        assert same[~heard].all(), name


def test_what_leaps_takes_from_the_shares_of_those_not_heard_too() -> None:
    known, heard = after(white(HOUR, 0.01)), np.arange(BUNDLES) % 2 == 1
    later = follow(known, white(1, 0.01, seed=2)[0] + np.log(30.0) * ONE, HOUR + 1, heard)
    left = (later.level / known.level)[~heard]
    np.testing.assert_allclose(left, BUNDLES / (BUNDLES + 29), rtol=0.01)


def test_where_outliers_are_common_one_changes_the_level_and_its_lag_by_little() -> None:
    """A sample of fifty times the level, among some forty: as it stands it would double it."""
    *past, last = noise(0.0, 241, tails=3)
    known = after(past)
    last[7] = 4.0
    later = follow(known, last, 241)
    assert later.level[7] < 1.1 * known.level[7]
    assert later.behind[7] < known.behind[7] + 0.1


def test_reports_from_long_before_the_last_ones_change_nothing() -> None:
    """The clocks of some brokers were set back by a year."""
    known, heard = after(white(HOUR, 0.1)), np.arange(BUNDLES) % 2 == 0
    ago_ms = 365 * 86_400_000
    samples = Samples(
        keys=known.keys,
        traffic=np.where(heard, 1.0, 5.0),
        at_ms=np.where(heard, known.at_ms + 60_000, known.at_ms - ago_ms),
    )
    later = follow_samples(known, samples, 1800.0, bound(BUNDLES, 60.0, 1.0))
    np.testing.assert_array_equal(later.at_ms[~heard], known.at_ms[~heard])
    np.testing.assert_array_equal(later.weight[~heard], known.weight[~heard])


def test_the_first_traffic_of_an_idle_fleet_tells_nothing_of_its_noise() -> None:
    idle = np.full(BUNDLES, -np.inf)
    assert not after([idle, idle, *white(1, 0.1)]).known
    assert after([idle, idle, *white(2, 0.1)]).known


def test_what_leaps_begins_again_with_the_noise_it_was_known_for() -> None:
    known = after(white(HOUR, 0.1))
    later = follow(known, white(1, 0.1, seed=2)[0] + np.log(6.0) * ONE, HOUR + 1)
    assert np.flatnonzero(later.age == 1).tolist() == [7]
    for name in ("variance", "moved", "seen"):
        learned = getattr(later, name) != getattr(known, name)
        assert np.flatnonzero(~learned).tolist() == [7], name
    for name in ("up", "rise", "rising", "down", "fall", "falling", "behind"):
        assert (getattr(known, name) != 0).any(), name
        assert getattr(later, name)[7] == 0, name
    assert later.last[7] == later.level[7]
    assert (later.weight[7], later.squares[7]) == (1, 1)


def test_a_leap_in_a_young_fleet_takes_from_the_first_samples_of_all_others_and_ends_its_own() -> (
    None
):
    past, known = Estimates(), after(white(5, 0.02))
    for minute, each in enumerate(white(4, 0.02, seed=2), 6):
        past, known = known, follow(known, each + np.log(30.0) * ONE, minute)
    assert np.flatnonzero(known.age == 1).tolist() == [7]
    assert (past.first > 0).all()
    assert known.first[7] == 0
    kept, left = (known.first / past.first)[~ONE], (known.level / past.level)[~ONE]
    np.testing.assert_allclose(kept, np.median(left), rtol=0.01)
    assert np.median(left) < 0.96
