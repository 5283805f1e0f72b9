"""Hypothesis strategies: reports that no broker can mean, and fleets that get them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from sources.records import Record
from tests.support.random_clusters import PAIRS
from tests.support.reports import bundle
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.settings import Settings
from trimtab.shedding import DEFAULTS
from trimtab.wire import keys
from trimtab.wire.ownership import Change
from trimtab.wire.ownership import Record as Owned
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

START_MS: Final = 1_800_000_000_000
STEP_MS: Final = 20_000
BROKERS: Final = [f"{letter}:1" for letter in "abcde"]
BUNDLES: Final = [bundle(i, 16) for i in range(16)]

MOST: Final = {
    "cpu": 2.0,
    "memory": 2.0,
    "directMemory": 2.0,
    "bandwidthIn": 10.0,
    "bandwidthOut": 10.0,
}
"""Usage over limit that is believed, written down once more."""

_huge = st.sampled_from([1e13, 1e14, 1e15, 1e16, 1e100, 1e300])
_counts = st.sampled_from([10**9, 10**18, 10**30, 10**400, -1])
_rates = st.one_of(_huge, st.sampled_from([-1.0, -1e-300]))


@st.composite
def _resource(draw: st.DrawFn) -> dict[str, Any]:
    field = draw(st.sampled_from(sorted(MOST)))
    limit = draw(st.sampled_from([0.2, 100.0, 400.0, 1e6]))
    beyond = draw(st.one_of(st.floats(1.001, 1e6), st.just(1e12)))
    said = draw(
        st.sampled_from(
            [
                {"usage": beyond * MOST[field] * limit, "limit": limit},
                {"usage": 50.0, "limit": draw(st.sampled_from([1e-300, 1e-9, 1e-6, 0.09]))},
                {"usage": draw(_huge), "limit": limit},
                {"usage": -draw(st.sampled_from([0.5, 2.0, 1e300])), "limit": limit},
            ]
        )
    )
    return {field: said}


@st.composite
def _traffic(draw: st.DrawFn) -> dict[str, Any]:
    rate = st.sampled_from(["msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut"])
    count = st.sampled_from(["topics", "consumerCount", "producerCount"])
    which = draw(st.integers(0, 3))
    if which == 0:
        return {draw(rate): draw(_rates)}
    if which == 1:
        return {"numTopics": draw(_counts)}
    figures = {draw(rate): draw(_rates)} if which == 2 else {draw(count): draw(_counts)}
    return {"lastStats": {draw(st.sampled_from(BUNDLES)): figures}}


_others = st.sampled_from(
    [
        {"lastStats": {"t/ns/0x20000000_x": {}}},
        {"lastStats": {"t/ns/0x80000000_0x20000000": {}}},
        {"bundles": ["t/ns/0x20000000_x"]},
        {"brokerVersionString": "9" * 5000},
        {"cpu": {"usage": float("nan"), "limit": 100}},
        {"cpu": {"usage": 50, "limit": float("inf")}},
        {"cpu": None},
    ]
)


@st.composite
def nonsense(draw: st.DrawFn, good: bytes) -> bytes:
    """A report that is ``good`` but for something that cannot be."""
    wrong = draw(st.one_of(_resource(), _resource(), _traffic(), _others))
    return json.dumps(json.loads(good) | wrong).encode()


@dataclass(frozen=True)
class Fleet:
    """What brokers report at each step, and who owns what."""

    owner: dict[str, str]
    cpu: list[dict[str, float]]
    """By step and broker."""
    rate: dict[str, float]
    """By bundle: messages/s."""

    def report(self, step: int, broker: str) -> bytes:
        """Of a broker at a step."""
        mine = [name for name, owner in self.owner.items() if owner == broker]
        stats = {
            name: BundleStats(
                msg_rate_in=self.rate[name], msg_throughput_in=1e4 * self.rate[name], topics=1
            )
            for name in mine
        }
        rate = sum(self.rate[name] for name in mine)
        data = LocalBrokerData(
            cpu=Resource(self.cpu[step][broker], 100.0),
            bandwidth_in=Resource(80.0 * rate, 1e7),
            last_stats=stats,
            bundles=mine,
            msg_rate_in=rate,
            msg_throughput_in=1e4 * rate,
            num_topics=len(mine),
            start_timestamp=1,
        )
        return encode(data)

    def changes(self) -> list[Record]:
        """The ownership journal."""
        return [
            Record(
                keys.OWNERSHIP,
                0,
                number,
                START_MS,
                f"c/{name}".encode(),
                msgspec.json.encode(
                    Change(
                        cluster="c",
                        bundle=name,
                        event=Event.CLAIM,
                        record=Owned(state=State.OWNED, epoch=Epoch(1, 1), owner=owner),
                    )
                ),
            )
            for number, (name, owner) in enumerate(self.owner.items())
        ]


@st.composite
def fleets(draw: st.DrawFn, steps: int) -> Fleet:
    """Three to five brokers, some of which are much busier than others."""
    brokers = BROKERS[: draw(st.integers(3, 5))]
    owner = {name: draw(st.sampled_from(brokers)) for name in BUNDLES}
    usage = st.sampled_from([5.0, 20.0, 60.0, 90.0, 105.0])
    usual = {broker: draw(usage) for broker in brokers}
    wobble = st.floats(-2.0, 2.0)
    cpu = [{b: usual[b] + draw(wobble) for b in brokers} for _ in range(steps)]
    rate = {name: draw(st.sampled_from([1.0, 500.0, 3000.0])) for name in BUNDLES}
    return Fleet(owner, cpu, rate)


def job_of(pair: tuple[str, str], observe: bool, grace: float) -> Settings:
    """A job of a shedder and a placement that acts readily."""
    return DEFAULTS.changed(
        {
            "round.shedding": pair[0],
            "round.placement": pair[1],
            "round.interval": STEP_MS / 1000,
            "round.silence": 60.0,
            "round.grace_period": grace,
            "round.observe_only": observe,
            "planner.false_moves": 1e6,
            "threshold.threshold": 0.05,
            "threshold.min_throughput": 0,
            "avg.low_hits": 1,
            "avg.high_hits": 1,
            "unload.min_rate": 1.0,
            "unload.min_throughput": 0,
            "transfer.hits": 0,
            "doubt.silent_brokers": 1.0,
        }
    )


jobs: st.SearchStrategy[Settings] = st.builds(
    job_of,
    st.sampled_from([("trimtab", "least-predicted-usage"), *PAIRS]),
    st.booleans(),
    st.sampled_from([0.0, 60.0]),
)
"""The default strategy and all of Pulsar's."""
