"""Load follows ownership, and the same seed gives the same fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.load_model import LoadModel, load_model
from simulation.profile import InvalidProfile, Profile
from trimtab.model import FULL_RANGE_END, HashRange, merge_names, parse_bundle
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

NOW_MS = 1_800_000_000_000

profiles = st.builds(
    Profile,
    brokers=st.integers(2, 15),
    bundles=st.integers(60, 200),
    namespaces=st.integers(1, 60),
    skew=st.floats(0.3, 3.0),
    rate_sigma=st.floats(0.0, 1.0),
    noise=st.floats(0.0, 0.1),
    seed=st.integers(0, 2**32),
)


def said(model: LoadModel, broker: int, owned: tuple[str, ...], seed: int = 0) -> LocalBrokerData:
    return model.report(model.brokers[broker], owned, NOW_MS, np.random.default_rng(seed))


def test_the_default_fleet_starts_between_20_and_85_percent() -> None:
    model = load_model(Profile())
    usages = sorted(model.usage(model.owned_at_start(row)) for row in range(12))
    assert usages[0] == pytest.approx(0.20, abs=0.01)
    assert usages[-1] == pytest.approx(0.85, abs=0.01)
    assert len(model.bundles) == 480


def test_a_high_skew_leaves_few_hot_brokers() -> None:
    model = load_model(Profile(skew=4.0))
    usages = np.array([model.usage(model.owned_at_start(row)) for row in range(12)])
    assert (usages > 0.525).sum() <= 3


@settings(max_examples=50, deadline=None)
@given(profile=profiles)
def test_every_bundle_has_one_owner_and_its_namespace_is_tiled(profile: Profile) -> None:
    model = load_model(profile)
    owned = [b for row in range(profile.brokers) for b in model.owned_at_start(row)]
    assert sorted(owned) == sorted(model.bundles)
    ranges = defaultdict(list)
    for namespace, span in map(parse_bundle, model.bundles):
        ranges[namespace].append(span)
    assert len(ranges) == profile.namespaces
    for spans in ranges.values():
        ends = [0]
        for span in sorted(spans):
            assert span.low == ends[-1]
            ends.append(span.high)
        assert ends[-1] == FULL_RANGE_END


@settings(max_examples=50, deadline=None)
@given(profile=profiles)
def test_totals_of_a_report_are_the_sums_of_its_bundles(profile: Profile) -> None:
    model = load_model(profile)
    report = said(model, 0, model.owned_at_start(0))
    stats = list((report.last_stats or {}).values())
    assert report.msg_rate_in == pytest.approx(fsum(s.msg_rate_in for s in stats))
    assert report.msg_rate_out == pytest.approx(fsum(s.msg_rate_out for s in stats))
    assert report.msg_throughput_in == pytest.approx(fsum(s.msg_throughput_in for s in stats))
    assert report.msg_throughput_out == pytest.approx(fsum(s.msg_throughput_out for s in stats))
    assert report.bandwidth_in.usage == pytest.approx(report.msg_throughput_in * 8 / 1000)
    assert report.num_topics == sum(s.topics for s in stats)
    assert report.num_producers == sum(s.producer_count for s in stats)
    assert report.num_consumers == sum(s.consumer_count for s in stats)
    assert report.num_bundles == len(report.bundles) == len(stats)


@settings(max_examples=50, deadline=None)
@given(profile=profiles)
def test_a_report_passes_the_check_of_its_reader(profile: Profile) -> None:
    model = load_model(profile)
    owned = model.owned_at_start(0)
    columns = decode(encode(said(model, 0, owned)))
    assert sorted(columns.bundles) == sorted(owned)
    assert not columns.heartbeat
    assert columns.shown.all()


def test_a_broker_without_bundles_says_so_and_is_no_heartbeat() -> None:
    columns = decode(encode(said(load_model(Profile()), 0, ())))
    assert (columns.bundles, columns.listed, columns.heartbeat) == ((), 0, False)


def test_the_same_seed_repeats_fleet_and_reports_and_another_does_not() -> None:
    one, same, other = (load_model(Profile(seed=seed)) for seed in (7, 7, 8))
    assert encode(said(one, 3, one.owned_at_start(3))) == encode(
        said(same, 3, same.owned_at_start(3))
    )
    assert not np.array_equal(one.cost, other.cost)


def test_a_moved_bundle_takes_its_load_along() -> None:
    model = load_model(Profile(noise=0.0))
    source, destination = model.owned_at_start(0), model.owned_at_start(1)
    moved = source[5]
    cost = model.cost[model.row[moved]]
    left, gained = tuple(b for b in source if b != moved), (*destination, moved)
    assert model.usage(source) - model.usage(left) == pytest.approx(cost)
    assert model.usage(gained) - model.usage(destination) == pytest.approx(cost)
    for broker, owned in ((0, left), (1, gained)):
        report = said(model, broker, owned)
        assert report.cpu.usage / report.cpu.limit == pytest.approx(model.usage(owned))


def spanning(bundles: Sequence[str]) -> str:
    """What neighbours are together."""
    return reduce(merge_names, bundles)


def test_what_is_merged_has_the_load_of_its_parts() -> None:
    model = load_model(Profile(noise=0.0, namespaces=8))
    parts = model.bundles[2:5]
    whole = spanning(parts)
    others = tuple(b for b in model.owned_at_start(0) if b not in parts)
    apart, together = said(model, 0, (*others, *parts)), said(model, 0, (*others, whole))
    assert model.usage([whole]) == pytest.approx(model.usage(parts))
    assert together.msg_rate_in == pytest.approx(apart.msg_rate_in)
    assert (together.num_topics, together.num_bundles) == (apart.num_topics, len(others) + 1)
    stats = [(apart.last_stats or {})[part] for part in parts]
    figures = (together.last_stats or {})[whole]
    assert figures.topics == sum(each.topics for each in stats)
    assert figures.msg_throughput_out == pytest.approx(fsum(s.msg_throughput_out for s in stats))
    assert model.topics(whole) == {at: t for part in parts for at, t in model.topics(part).items()}


def test_halves_of_two_bundles_may_be_merged_too() -> None:
    model = load_model(Profile(noise=0.0))
    one, other = model.bundles[:2]
    namespace, (low, between) = parse_bundle(one)
    _, (_, high) = parse_bundle(other)
    middles = (low + between) // 2, (between + high) // 2
    across = f"{namespace}/{HashRange(*middles)}"
    cost = model.cost[:2].sum() / 2
    assert model.usage([across]) - model.profile.base == pytest.approx(cost)
    assert len(model.topics(across)) == 10


def test_noise_is_independent_of_the_order_bundles_are_named_in() -> None:
    model = load_model(Profile())
    owned = model.owned_at_start(2)
    assert said(model, 2, owned) == said(model, 2, owned[::-1])


def test_a_saturated_host_reports_its_limit() -> None:
    model = load_model(Profile())
    report = said(model, 0, model.bundles)
    assert report.cpu.usage == report.cpu.limit


def test_all_problems_of_a_profile_are_reported_at_once() -> None:
    with pytest.raises(InvalidProfile) as error:
        Profile(brokers=1, low=0.9, high=0.2, noise=-1)
    assert len(error.value.problems) == 3


def test_a_namespace_that_was_created_since_has_no_load() -> None:
    model = load_model(Profile(brokers=2, bundles=8, namespaces=2, noise=0.0))
    made, (whole, *_) = "t/made-up/0x80000000_0xffffffff", model.bundles
    alone = model.report("a:1", [whole], 0, np.random.default_rng(1))
    report = model.report("a:1", [whole, made], 0, np.random.default_rng(1))
    assert report.bundles == [made, whole]
    assert isinstance(report.last_stats, dict)
    assert isinstance(alone.last_stats, dict)
    assert report.last_stats == {made: BundleStats(), **alone.last_stats}
    assert report.cpu == alone.cpu
