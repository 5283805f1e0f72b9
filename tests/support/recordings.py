"""Hypothesis strategies: batches of what a job reads, of brokers that come and go."""

from __future__ import annotations

from typing import Final

import msgspec
from hypothesis import strategies as st

from sources.records import Record
from tests.support.reports import bundle
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.shedding import DEFAULTS
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change
from trimtab.wire.ownership import Record as Owned
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

START_MS = 1_800_000_000_000

AVG = DEFAULTS.changed(
    {
        "round.shedding": "avg",
        "round.placement": "avg",
        "round.interval": 5.0,
        "round.grace_period": 5.0,
        "round.silence": 10.0,
        "round.forget": 20.0,
        "avg.low_hits": 1,
        "avg.high_hits": 1,
        "unload.min_rate": 1.0,
        "doubt.silent_brokers": 1.0,
        "doubt.lost_brokers": 1.0,
        "replay.export_interval": 12.0,
    }
)
"""Rounds that act on what they see first, on brokers that are soon forgotten."""

jobs = st.sampled_from(
    [
        AVG,
        AVG.changed({"shadow.shedding": "threshold"}),
    ]
)
"""What a job is started with."""

Batch = tuple[int, list[Record]]
"""A batch's timestamp and what it read."""

_CHANGES: Final[list[dict[str, str | int | float | bool]]] = [
    {"round.interval": 0.0},
    {"replay.export_interval": 3.0},
    {"round.max_moves": 1},
    {
        "loadBalancerLoadSheddingStrategy": "ThresholdShedder",
        "loadBalancerLoadPlacementStrategy": "LeastLongTermMessageRate",
    },
]

_RESETS: Final[list[tuple[str, ...]]] = [
    (),
    ("round.max_moves",),
    ("round.shedding", "loadBalancerLoadPlacementStrategy"),
]

clusters = st.sampled_from(["east", "west"])
brokers = st.sampled_from([f"{letter}:1" for letter in "abcd"])
bundles = st.integers(0, 7).map(lambda index: bundle(index, 8))


@st.composite
def _said(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """A report: topic, key, value."""
    held = draw(st.lists(bundles, max_size=4, unique=True))
    rate = draw(st.sampled_from([0.0, 10.0, 1000.0]))
    data = LocalBrokerData(
        cpu=Resource(draw(st.sampled_from([5.0, 50.0, 90.0])), 100.0),
        last_stats={name: BundleStats(msg_rate_in=rate, topics=1) for name in held},
        bundles=held,
        msg_rate_in=rate * len(held),
        start_timestamp=draw(st.sampled_from([1, 1, 1, 2])),
    )
    value = draw(st.sampled_from([encode(data), encode(data), encode(data), b"{"]))
    return keys.LOAD_REPORTS, f"{draw(clusters)}/{draw(brokers)}".encode(), value


@st.composite
def _intended(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """An intent: topic, key, value."""
    cluster = draw(clusters)
    kinds = [
        IntentKind.BROKER_LOST,
        IntentKind.BROKER_LOST,
        IntentKind.BROKER_JOINED,
        IntentKind.DRAIN,
        IntentKind.UNDRAIN,
    ]
    kinds += [IntentKind.SETTINGS, IntentKind.RESET, IntentKind.PAUSE, IntentKind.RESUME]
    kinds += [IntentKind.UNLOAD, IntentKind.SPLIT, IntentKind.NAMESPACE]
    kind = draw(st.sampled_from(kinds))
    intent = Intent(
        # One request may come twice, and two may have one id.
        id=str(draw(st.integers(0, 30))),
        kind=kind,
        cluster=cluster,
        broker=draw(brokers),
        bundle=draw(bundles),
        name=draw(st.sampled_from(["t/ns", "t/new"])) if kind is IntentKind.NAMESPACE else "",
        settings=draw(st.sampled_from(_CHANGES)) if kind is IntentKind.SETTINGS else {},
        names=draw(st.sampled_from(_RESETS)) if kind is IntentKind.RESET else (),
    )
    return keys.CONTROL, cluster.encode(), msgspec.json.encode(intent)


@st.composite
def _changed(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """A change of ownership: topic, key, value."""
    cluster, name = draw(clusters), draw(bundles)
    state = draw(st.sampled_from([State.OWNED, State.OWNED, State.RELEASING, State.FREE]))
    owner = None if state is State.FREE else draw(brokers)
    aim = draw(brokers) if state is State.RELEASING else None
    epoch = Epoch(1, draw(st.integers(1, 50)))
    stands = Owned(state=state, epoch=epoch, owner=owner, destination=aim)
    change = Change(cluster=cluster, bundle=name, event=Event.CLAIM, record=stands)
    return keys.OWNERSHIP, f"{cluster}/{name}".encode(), msgspec.json.encode(change)


@st.composite
def recordings(draw: st.DrawFn) -> list[Batch]:
    """Up to thirty batches, seconds apart."""
    at, batches, offset = START_MS, [], 0
    for _ in range(draw(st.integers(2, 30))):
        at += draw(st.sampled_from([0, 1000, 4000, 15_000]))
        read = []
        for topic, key, value in draw(
            st.lists(st.one_of(_said(), _said(), _said(), _intended(), _changed()), max_size=6)
        ):
            late = draw(st.sampled_from([0, 0, 0, 2000]))
            read.append(Record(topic, 0, offset, at - late, key, value))
            offset += 1
        batches.append((at, read))
    return batches
