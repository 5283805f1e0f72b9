"""Hypothesis strategies: clusters with ties, idle brokers, sole bundles, moves in flight."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.support.clusters import NOW_MS, Broker, Bundle, Four
from trimtab.placement import PLACERS
from trimtab.policies import Isolation, Policies
from trimtab.settings import SPLIT_TRIGGERS, Settings
from trimtab.shedding import DEFAULTS, SHEDDERS

Cluster = dict[str, Broker]

PAIRS = [(s, p) for s in SHEDDERS for p in PLACERS if (s == "avg") == (p == "avg")]
"""Every shedder with every placement that it goes with."""

usages = st.one_of(
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.9]), st.floats(0, 1.2, allow_nan=False)
)
_traffic = st.one_of(
    st.sampled_from([0.0, 1.0, 900.0, 5e6, 4e7]), st.floats(0, 1e8, allow_nan=False)
)
fours: st.SearchStrategy[Four] = st.tuples(_traffic, _traffic, _traffic, _traffic)


@st.composite
def clusters(draw: st.DrawFn, least: int = 0) -> Cluster:
    """Up to seven brokers by name, in any order."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=least, max_size=7, unique=True))
    brokers = {}
    for name in names:
        bundles = []
        for number in range(draw(st.integers(0, 5))):
            namespace = draw(st.sampled_from(["t/one", "t/two", "pulsar/c/h:8080"]))
            bundle = Bundle(
                short=draw(fours),
                long=draw(fours),
                name=f"{namespace}/0x{ord(name):04x}{number:04x}_0xffffffff",
                topics=draw(st.integers(0, 40)),
                movable=not namespace.startswith("pulsar") and draw(st.integers(0, 9)) > 0,
            )
            if draw(st.integers(0, 9)) == 0:
                bundle = replace(bundle, going_to=draw(st.sampled_from(names)))
            bundles.append(bundle)
        brokers[name] = Broker(
            usage=draw(usages),
            bundles=bundles,
            topics=draw(st.integers(0, 60)),
            available=draw(st.integers(0, 7)) > 0,
            reported_ms=NOW_MS - draw(st.sampled_from([0, 0, 0, 0, 4_000_000])),
            relieved_ms=draw(st.sampled_from([0, 0, 0, 0, 0, NOW_MS - 10_000])),
            version=draw(st.sampled_from(["4.0.8", "4.0.8", "4.1.0"])),
        )
    return brokers


@st.composite
def policies(draw: st.DrawFn) -> Policies:
    """Isolation, groups and domains for the names that `clusters` uses."""
    host = st.sampled_from(["[a-c]", "[d-h]", "a", "b|d", "z"])
    hosts = st.lists(host, max_size=2).map(tuple)
    isolation = st.builds(
        Isolation,
        namespaces=st.sampled_from([("t/one",), ("t/.*",), ("x/.*",)]),
        primary=hosts,
        secondary=hosts,
        min_available=st.integers(1, 3),
    )
    groups = st.dictionaries(st.sampled_from(["t/one", "t/two"]), st.sampled_from(["g", "G", "h"]))
    domains = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["d1", "d2"]))
    return Policies(
        isolation=draw(st.dictionaries(st.sampled_from(["p", "q"]), isolation)),
        groups=draw(groups),
        domains=draw(domains),
    )


@st.composite
def all_settings(draw: st.DrawFn) -> Settings:
    """Settings that act readily, with every strategy."""
    shedding, placement = draw(st.sampled_from(PAIRS))
    low = draw(st.sampled_from([0.0, 5.0, 15.0]))
    return DEFAULTS.changed(
        {
            "round.shedding": shedding,
            "round.placement": placement,
            "round.max_moves": draw(st.sampled_from([0, 0, 1, 3])),
            "round.overloaded_threshold": draw(st.sampled_from([0.4, 0.85])),
            "threshold.threshold": draw(st.sampled_from([0.0, 0.05, 0.1])),
            "threshold.min_throughput": draw(st.sampled_from([0, 1048576])),
            "threshold.lower_boundary": draw(st.booleans()),
            "avg.low_threshold": low,
            "avg.high_threshold": draw(st.sampled_from([15.0, 40.0])),
            "avg.low_hits": draw(st.sampled_from([0, 1, 2])),
            "avg.high_hits": draw(st.sampled_from([0, 1, 2])),
            "unload.min_rate": draw(st.sampled_from([0, 1000])),
            "unload.min_throughput": draw(st.sampled_from([0, 1048576])),
            "unload.max_share": draw(st.sampled_from([0.1, 0.5, 1.0])),
            "placement.distribute_evenly": draw(st.booleans()),
            "placement.max_topics": draw(st.sampled_from([30, 50000])),
            "placement.prefer_later_versions": draw(st.booleans()),
            "placement.failure_domains": draw(st.booleans()),
            "transfer.target_deviation": draw(st.sampled_from([0.0, 0.05, 0.25])),
            "transfer.hits": draw(st.sampled_from([0, 0, 1])),
            "transfer.directed": draw(st.booleans()),
            "transfer.max_brokers": draw(st.sampled_from([1, 3])),
            "transfer.top_bundles": draw(st.sampled_from([2, 10])),
            "transfer.with_policies": draw(st.booleans()),
            "transfer.credit_swaps": draw(st.booleans()),
            "weights.history": draw(st.sampled_from([0.0, 0.5, 0.9])),
            "split.trigger": draw(st.sampled_from(SPLIT_TRIGGERS)),
        }
    )
