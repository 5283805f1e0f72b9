"""What a bundle is believed to carry: followed through noise, waves, steps and silence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.planner.noises import follow, in_event, just_leapt, noise
from tests.support.clusters import NOW_MS, Broker, cluster, throughputs
from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates, Samples
from trimtab.load_model.estimating.fleet_events import count_event
from trimtab.load_model.estimating.rows import are_among, locate_keys
from trimtab.load_model.estimating.sampling import follow_samples
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.lineage import hand_down_shares
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.odds import bound
from trimtab.names import identities
from trimtab.settings import Settings
from trimtab.view import Bundles, View
from trimtab.wire.columns import pack, unpack

MINUTE_MS = 60_000
HOUR = 60
HALF_LIFE = 1800.0

Round = dict[int, float]
"""Key of a bundle to the bytes/s that are reported of it."""


def after(rounds: Iterable[Round], past: Estimates | None = None, start: int = 1) -> Estimates:
    """The estimates after rounds a minute apart, the first of them ``start`` minutes from zero."""
    known = past or Estimates()
    for minute, traffic in enumerate(rounds, start):
        known = at(minute * MINUTE_MS, traffic, known)
    return known


def at(at_ms: int, traffic: Round, past: Estimates) -> Estimates:
    samples = Samples(
        keys=np.array(sorted(traffic), np.uint64),
        traffic=np.array([traffic[key] for key in sorted(traffic)]),
        at_ms=np.full(len(traffic), at_ms, np.int64),
    )
    return follow_samples(past, samples, HALF_LIFE, bound(len(traffic), 60.0, 1.0))


def numbered(traffic: Sequence[float] | Floats) -> Round:
    return dict(enumerate(map(float, traffic)))


def test_what_does_not_change_is_believed() -> None:
    known = after([{1: 10.0, 2: 30.0, 3: 60.0}] * 90)
    np.testing.assert_allclose(known.level, [0.1, 0.3, 0.6])
    assert not known.stepped.any()


def test_what_all_bundles_do_together_changes_no_level() -> None:
    """A day's wave, and all at once six times as much."""
    waves = 2.0 + np.sin(np.arange(120) / 120 * 2 * np.pi)
    waves[60:] *= 6
    known = after({1: 10.0 * wave, 2: 30.0 * wave, 3: 60.0 * wave} for wave in waves)
    np.testing.assert_allclose(known.level, [0.1, 0.3, 0.6])
    assert not known.stepped.any()


@pytest.mark.parametrize(("noise", "samples"), [(0.0, 1), (0.2, 2), (0.5, 6)])
@pytest.mark.parametrize("seed", range(5))
def test_a_step_of_six_is_found_within_a_few_samples(noise: float, samples: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = np.full(50, 20.0)
    known = after(numbered(true * noisy(rng, noise, 50)) for _ in range(HOUR))
    true[7] *= 6
    found = 0
    while not known.stepped[7]:
        known = after([numbered(true * noisy(rng, noise, 50))], known, HOUR + 1 + found)
        found += 1
    assert found <= samples
    assert np.flatnonzero(known.stepped).tolist() == [7]
    share = 120.0 / true.sum()
    assert known.level[7] > share / 2 - 1e-2
    assert known.chance[7] == 0
    rest = after((numbered(true * noisy(rng, noise, 50)) for _ in range(HOUR)), known, 2 * HOUR)
    assert rest.level[7] == pytest.approx(share, rel=0.01 + noise / 2)
    assert not rest.stepped[7]


def test_what_stepped_without_noise_has_its_level_at_once() -> None:
    known = after([*[numbered([20.0] * 10)] * HOUR, numbered([*[20.0] * 9, 120.0])])
    assert known.level[9] == pytest.approx(0.4)
    assert known.weight[9] == known.squares[9] == 1


def test_what_steps_takes_from_the_shares_of_all_others_at_once() -> None:
    """Two of five, four times as busy, then three times: the others have not changed among
    themselves, and what two of them had of a hundred they have of 180, of 420."""
    before, once = [40.0, 30.0, 10.0, 15.0, 5.0], [40.0, 30.0, 10.0, 60.0, 20.0]
    later = [40.0, 30.0, 10.0, 180.0, 60.0]
    known = after([numbered(before)] * HOUR)
    for minute, traffic in enumerate((once, later), HOUR + 1):
        known = after([numbered(traffic)], known, minute)
        np.testing.assert_allclose(known.level, np.array(traffic) / sum(traffic))


def test_what_is_reported_for_the_first_time_takes_from_the_shares_of_all_others() -> None:
    """At a start, brokers report one after another: the first ones' bundles are no larger."""
    traffic = [40.0, 30.0, 10.0, 15.0, 5.0, 60.0]
    known = Estimates()
    for minute, reported in enumerate((2, 3, 6, 6), 1):
        known = after([numbered(traffic[:reported])], known, minute)
        np.testing.assert_allclose(
            known.level, np.array(traffic[:reported]) / sum(traffic[:reported])
        )
    assert known.weight[0] > 3
    assert not known.stepped.any()


def test_so_it_takes_from_the_share_of_what_is_on_its_way() -> None:
    """A fifth of all is not reported for a moment; then as much comes as all of it."""
    known = after([{1: 20.0, 2: 30.0, 3: 50.0}] * 10)
    known = after([{2: 30.0, 3: 50.0, 4: 100.0}], known, 11)
    np.testing.assert_allclose(known.level, [0.1, 0.15, 0.25, 0.5])


def test_a_split_leaves_the_shares_of_all_others() -> None:
    names = [f"t/n/{each}" for each in ("0x00000000_0x80000000", "0x80000000_0xffffffff")]
    children = [f"t/n/{each}" for each in ("0x00000000_0x40000000", "0x40000000_0x80000000")]
    before, later = identities(names), identities([*children, names[1]])
    known = after([{int(before[0]): 40.0, int(before[1]): 60.0}] * 10)
    order = np.argsort(later)
    samples = Samples(later[order], np.ones(3), np.full(3, 11 * MINUTE_MS, np.int64))
    known = hand_down_shares(known, [*children, names[1]], samples, order)
    known = after([dict(zip(map(int, later), (10.0, 30.0, 60.0), strict=True))], known, 11)
    at, _ = locate_keys(known, later)
    np.testing.assert_allclose(known.level[at], [0.1, 0.3, 0.6])


def test_an_event_is_over_for_others_before_it_is_history() -> None:
    """What leaps beside three others must do so within some samples to be found as soon."""
    rng = np.random.default_rng(3)
    known = after(numbered(noisy(rng, 0.3, 60)) for _ in range(HOUR))
    event = {6: 100.0, 7: 100.0, 8: 100.0}
    known = after((numbered(noisy(rng, 0.3, 60)) | event for _ in range(5)), known, HOUR + 1)
    assert (just_leapt(known), known.leaping) == (3, 0)
    busier = [numbered(noisy(rng, 0.3, 60)) | event | {9: 4.0}] * 2
    assert not after(busier, known, HOUR + 6).stepped[9]


def test_what_steps_with_others_is_found_sooner() -> None:
    """The same samples of bundle 9, alone and while three others get a hundred times as busy."""
    rng = np.random.default_rng(3)
    hour = [numbered(noisy(rng, 0.3, 60)) for _ in range(HOUR)]
    busier = [numbered(noisy(rng, 0.3, 60)) for _ in range(2)]
    alone = [minute | {9: 4.0} for minute in busier]
    together = [minute | {6: 100.0, 7: 100.0, 8: 100.0} for minute in alone]
    assert not after(alone, after(hour), HOUR + 1).stepped[9]
    known = after(together, after(hour), HOUR + 1)
    assert np.flatnonzero(known.stepped).tolist() == [6, 7, 8, 9]
    assert just_leapt(known) == 4


def test_leaps_that_come_one_by_one_are_no_event_though_some_meet() -> None:
    """Every other minute one of two hundred bundles gets three times as busy; then thirty do."""
    rng, factors = np.random.default_rng(3), np.ones(200)
    known = Estimates()
    for minute in range(1, HOUR + 1):
        if minute > 10 and minute % 2:
            factors[minute // 2] = 3.0
        known = after([numbered(factors * noisy(rng, 0.05, 200))], known, minute)
        assert not in_event(known)
        assert minute < 20 or just_leapt(known) >= 3
    factors[100:130] = 3.0
    rounds = [numbered(factors * noisy(rng, 0.05, 200)) for _ in range(4)]
    assert in_event(after(rounds, known, HOUR + 1))


def test_in_a_fleet_known_for_minutes_leaps_that_keep_coming_are_no_event() -> None:
    """What is usual is known once there were as many samples before them."""
    rng, factors, known = np.random.default_rng(4), np.ones(400), Estimates()
    for minute in range(1, 15):
        if minute > 4:
            factors[2 * minute : 2 * minute + 2] = 3.0
        known = after([numbered(factors * noisy(rng, 0.05, 400))], known, minute)
        assert not in_event(known)
    assert just_leapt(known) >= 10


def test_an_event_in_a_young_fleet_is_found_at_once_and_single_leaps_are_not() -> None:
    """One sample of a bundle may be an outlier; forty of two hundred at the same time are none."""
    rng, factors = np.random.default_rng(6), np.ones(200)
    known = after(numbered(noisy(rng, 0.05, 200)) for _ in range(8))
    for count in (5, 40):
        factors[:count] = 0.4
        later = after([numbered(factors * noisy(rng, 0.05, 200))], known, 9)
        assert np.flatnonzero(later.stepped).tolist() == ([] if count == 5 else [*range(40)])


def test_what_counts_as_before_its_leap_makes_no_event() -> None:
    rng, factors = np.random.default_rng(7), np.ones(200)
    known = after(numbered(noisy(rng, 0.05, 200)) for _ in range(HOUR))
    factors[:30] = 3.0
    known = after([numbered(factors * noisy(rng, 0.05, 200))], known, HOUR + 1)
    believed = np.ones(200, np.bool_)
    assert count_event(known, believed) == 30
    believed[2:30] = False
    assert count_event(known, believed) == 0


def test_noise_in_the_first_minutes_is_no_leap() -> None:
    for noise_of in (noise(0.95, 12), noise(0.0, 12, tails=4), noise(0.5, 12)):
        known = Estimates()
        for minute, each in enumerate(noise_of, 1):
            known = follow(known, each, minute)
            assert np.count_nonzero(known.first < 0) <= 1
        assert not known.first.any()


def test_first_samples_are_kept_of_a_young_fleet_only() -> None:
    known = after([{1: 10.0, 2: 30.0}] * 5)
    np.testing.assert_allclose(known.first, [0.25, 0.75])
    known = after([{1: 10.0, 2: 30.0, 3: 10.0}] * 20, known, 6)
    assert not known.first.any()


def noisy(rng: np.random.Generator, sigma: float, count: int) -> Floats:
    """Factors of mean 1."""
    factors: Floats = np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    return factors


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_noise_is_not_taken_for_a_level_shift(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.lognormal(0, 1, 20)
    known = Estimates()
    for minute in range(1, 301):
        known = after([numbered(true * noisy(rng, 0.5, 20))], known, minute)
        assert not known.stepped.any()
    np.testing.assert_allclose(known.level, true / true.sum(), rtol=0.25)


def test_the_chance_is_what_levels_differ_by() -> None:
    """Of many bundles alike, the variance of the levels is the mean of what is said of them."""
    rng = np.random.default_rng(1)
    known = after(numbered(noisy(rng, 0.5, 1000)) for _ in range(2 * HOUR))
    assert np.mean(known.chance) == pytest.approx(np.var(known.level), rel=0.2)


def test_a_repeated_sample_counts_once_a_minute() -> None:
    """Brokers report each five seconds what they refresh each minute."""
    once = after([{1: 10.0, 2: 30.0}] * 5)
    often = Estimates()
    for second in range(60, 301, 5):
        often = at(second * 1000, {1: 10.0, 2: 30.0}, often)
    assert often == once


def test_another_sample_counts_at_once() -> None:
    first = at(60_000, {1: 10.0, 2: 30.0}, Estimates())
    second = at(65_000, {1: 11.0, 2: 29.0}, first)
    assert second.weight == pytest.approx([2.0, 2.0], abs=0.01)
    assert second.level == pytest.approx([0.2625, 0.7375], abs=1e-3)


def test_a_repeated_sample_counts_no_less_than_before_as_another_comes() -> None:
    first = at(60_000, {1: 10.0, 2: 30.0}, Estimates())
    second = at(65_000, {1: 10.0, 2: 31.0}, first)
    assert second.weight[0] == first.weight[0]
    assert second.weight[1] > 1.9


def test_the_same_report_read_again_changes_nothing() -> None:
    known = after([{1: 10.0, 2: 30.0}, {1: 12.0, 2: 29.0}])
    assert at(2 * MINUTE_MS, {1: 12.0, 2: 29.0}, known) == known


@pytest.mark.parametrize("others", [(2, 3), (8, 9), ()], ids=["known", "never-seen", "none"])
def test_who_is_not_reported_is_remembered_for_an_hour(others: tuple[int, ...]) -> None:
    whole = after([{1: 20.0, 2: 30.0, 3: 50.0}] * 10)
    silent = after([dict.fromkeys(others, 40.0)] * 60, whole, 11)
    assert set(silent.keys.tolist()) == {1, 2, 3, *others}
    assert silent.level[0] == pytest.approx(0.2)
    back = at(70 * MINUTE_MS, {1: 20.0, 2: 30.0, 3: 50.0}, silent)
    assert back.weight[0] > 1


def test_what_is_on_its_way_keeps_its_share_for_ten_minutes() -> None:
    """What no broker reports for longer is gone: all traffic is that of the others."""
    known = after([{1: 20.0, 2: 30.0, 3: 50.0}] * 10)
    known = after([{2: 30.0, 3: 50.0}] * 10, known, 11)
    np.testing.assert_allclose(known.level, [0.2, 0.3, 0.5])
    known = after([{2: 30.0, 3: 50.0}] * 5, known, 21)
    assert known.level[1] > 0.31
    assert known.level[2] > 0.51


@pytest.mark.parametrize(("silent", "kept"), [(40.0, True), (80.0, False)])
def test_no_more_than_half_of_the_traffic_is_taken_to_be_on_its_way(
    silent: float, kept: bool
) -> None:
    rest = (100.0 - silent) / 2
    known = after([{1: silent, 2: rest, 3: rest}] * 10)
    later = after([{2: rest, 3: rest}] * 5, known, 11)
    assert bool(later.level[1] == pytest.approx(known.level[1])) is kept


def test_who_is_not_reported_for_longer_is_forgotten() -> None:
    known = after([{1: 20.0, 2: 30.0, 3: 50.0}] * 10)
    known = after([{2: 30.0, 3: 50.0}] * 61, known, 11)
    assert known.keys.tolist() == [2, 3]


def test_the_order_of_the_rows_changes_nothing() -> None:
    view = cluster(
        a=Broker(0.5, throughputs(3e6, 1e6, 4e6)), b=Broker(0.3, throughputs(1e6, 5e6, 9e6))
    )
    order = list(range(6))
    Random(2).shuffle(order)
    other = shuffled(view, order)
    one, two = PlannerHistory(), PlannerHistory()
    for minute in range(5):
        fleet, one = observe_fleet(minutes_later(view, minute), one, Settings())
        again, two = observe_fleet(minutes_later(other, minute), two, Settings())
        assert one.estimates == two.estimates
        np.testing.assert_array_equal(again.size, fleet.size[order])
        np.testing.assert_allclose(again.usage, fleet.usage)


def shuffled(view: View, order: list[int]) -> View:
    bundles = view.bundles
    return replace(
        view,
        intended=view.intended[order],
        bundles=Bundles(
            names=[bundles.names[row] for row in order],
            namespace=bundles.namespace[order],
            namespaces=bundles.namespaces,
            owner=bundles.owner[order],
            short=bundles.short[:, order],
            long=bundles.long[:, order],
            reported=lambda: bundles.stats[:, order],
            counts=bundles.counts[:, order],
            movable=bundles.movable[order],
        ),
    )


def minutes_later(view: View, minutes: int) -> View:
    reported_ms = np.full(len(view.brokers.names), NOW_MS + minutes * MINUTE_MS, np.int64)
    return replace(view, brokers=replace(view.brokers, reported_ms=reported_ms))


traffic = st.one_of(st.sampled_from([0.0, 0.0, 1.0, 1e6]), st.floats(0, 1e12), st.floats(0, 1e-300))
rounds = st.lists(st.dictionaries(st.integers(0, 2**64 - 1), traffic, max_size=8), max_size=8)
familiar = st.lists(st.dictionaries(st.integers(0, 5), traffic, max_size=6), max_size=30)


@given(st.one_of(rounds, familiar))
def test_whatever_is_reported_the_estimates_are_sound(given: list[Round]) -> None:
    known = Estimates()
    for minute, reported in enumerate(given, 1):
        known = after([reported], known, minute)
        assert (np.diff(known.keys.astype(object)) > 0).all()
        assert np.isfinite(known.chance).all()
        assert (known.chance >= 0).all()
        assert (known.level >= 0).all()
        assert (known.level <= 1 + 1e-9).all()
        assert (known.variance >= 0).all()
        if sum(reported.values()) > 0:
            places, there = locate_keys(known, np.array(sorted(reported), np.uint64))
            assert there.all()
            carries = np.array([reported[key] > 0 for key in sorted(reported)])
            assert (known.weight[places[carries]] > 0).all()


def test_counters_of_a_new_bundle_that_read_0_are_not_believed_at_once() -> None:
    """Brokers that have just started report so. Three minutes later it is idle."""
    assert after([{0: 0.0, 1: 1.0}, {0: 1.0, 1: 1.0}]).level.tolist() == [0.5, 0.5]
    for minutes in range(1, 6):
        assert bool(after([{0: 0.0, 1: 1.0}] * minutes).weight[0] > 0) == (minutes > 3)


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.integers(1, 5))
def test_a_fleet_without_traffic_tells_nothing(keys: list[int], times: int) -> None:
    known = after([dict.fromkeys(keys, 0.0)] * times)
    assert known.keys.tolist() == sorted(keys)
    assert not known.weight.any()
    assert not known.chance.any()


LEAPS_FROM_ALMOST_NOTHING: list[Round] = [
    {0: 0.0, 1: 0.0, 5: 0.0, 3: 0.0, 4: 1.0},
    {0: 0.0, 1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0},
    {0: 0.0, 1: 0.0, 2: 0.0, 4: 1.0},
    {0: 0.0, 4: 1.0},
    {4: 0.0, 0: 0.0, 1: 7.0194289383033884e-301, 3: 1068569939.0},
    {4: 0.0, 0: 1.0},
]


@example(LEAPS_FROM_ALMOST_NOTHING)
@given(familiar)
def test_estimates_come_back_from_bytes_as_they_were(given: list[Round]) -> None:
    known = after(given)
    data = pack(known)
    assert unpack(data, Estimates) == known
    assert pack(unpack(data, Estimates)) == data


def test_a_state_from_before_ages_were_kept_is_read() -> None:
    stored = msgspec.msgpack.decode(pack(after([{1: 10.0, 2: 30.0}] * 5)))
    del stored["age"]
    again = unpack(msgspec.msgpack.encode(stored), Estimates)
    assert again == after([{1: 10.0, 2: 30.0}] * 5)
    assert not again.stepped.any()


@given(familiar, st.dictionaries(st.integers(0, 5), traffic))
def test_it_goes_on_from_bytes_as_it_would_have(given: list[Round], last: Round) -> None:
    known = after(given)
    read = unpack(pack(known), Estimates)
    assert after([last], read, 99) == after([last], known, 99)


KEYS = st.lists(st.integers(0, 9), unique=True)


@given(KEYS, KEYS)
def test_keys_are_found_among_ascending_ones(some: list[int], keys: list[int]) -> None:
    ascending = np.array(sorted(keys), np.uint64)
    assert are_among(np.array(some, np.uint64), ascending).tolist() == [k in keys for k in some]
