"""Builders of views: ``cluster(hot=0.9, cold=0.1)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import BANDWIDTH_OUT, CPU, THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from trimtab.load import percentages
from trimtab.policies import NO_POLICIES, Policies
from trimtab.view import Brokers, Bundles, View, namespaces_of

NOW_MS = 1_000_000_000
"""When the view is looked at, and its brokers reported."""

Four = tuple[float, float, float, float]
"""Messages/s in and out, bytes/s in and out."""


@dataclass(frozen=True)
class Bundle:
    """One bundle of a broker; ``name`` is made up unless given."""

    short: Four = (0.0, 0.0, 0.0, 0.0)
    long: Four | None = None
    """As ``short`` unless given."""
    name: str | None = None
    topics: int = 1
    sessions: int = 0
    movable: bool = True
    going_to: str | None = None
    """The broker it is in flight to."""


@dataclass(frozen=True)
class Broker:
    """One broker; its traffic is the sum of its bundles' unless given."""

    usage: float = 0.0
    """Of the processor, as a fraction."""
    bundles: Sequence[Bundle] = ()
    traffic: Four | None = None
    bandwidth_out: float = 0.0
    topics: int = 0
    listed: int | None = None
    available: bool = True
    reported_ms: int = NOW_MS
    relieved_ms: int = 0
    version: str = "4.0.8"
    load_manager: str = ""
    persistent: bool = True


def rates(*messages: float) -> list[Bundle]:
    """Bundles with these message rates, all incoming."""
    return [Bundle((rate, 0.0, 0.0, 0.0)) for rate in messages]


def throughputs(*numbers: float) -> list[Bundle]:
    """Bundles with these bytes/s, half in and half out."""
    return [Bundle((0.0, 0.0, number / 2, number / 2)) for number in numbers]


def cluster(**brokers: float | Broker) -> View:
    """A view of brokers by name; a number is the usage of a broker with four equal bundles."""
    return view_of({name: _broker(given) for name, given in brokers.items()})


def _broker(given: float | Broker) -> Broker:
    if isinstance(given, Broker):
        return given
    share = (given * 2500.0, 0.0, given * 2.5e7, 0.0)
    return Broker(given, [Bundle(share)] * 4)


@dataclass
class _Columns:
    names: list[str] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    intended: list[int] = field(default_factory=list)
    bundles: list[Bundle] = field(default_factory=list)


def view_of(brokers: Mapping[str, Broker], policies: Policies = NO_POLICIES) -> View:
    """A view with brokers in order of name and each broker's bundles in order of name."""
    names = sorted(brokers)
    given = [brokers[name] for name in names]
    columns = _Columns()
    for row, name in enumerate(names):
        named = {
            bundle.name or f"t/{name}/0x{i:08x}_0x{i + 1:08x}": bundle
            for i, bundle in enumerate(brokers[name].bundles)
        }
        for bundle in sorted(named):
            going_to = named[bundle].going_to
            columns.names.append(bundle)
            columns.owner.append(row)
            columns.intended.append(row if going_to is None else names.index(going_to))
            columns.bundles.append(named[bundle])
    return View(
        cluster="test",
        brokers=_brokers(names, given),
        bundles=_bundles(columns),
        intended=np.array(columns.intended, dtype=np.int64),
        policies=policies,
        now_ms=NOW_MS,
    )


def _brokers(names: Sequence[str], given: Sequence[Broker]) -> Brokers:
    resources = np.zeros((5, len(given)))
    hundred = np.full(len(given), 100.0)
    resources[CPU] = percentages(np.array([b.usage * 100 for b in given]), hundred)
    resources[BANDWIDTH_OUT] = percentages(
        np.array([b.bandwidth_out * 100 for b in given]), hundred
    )
    traffic = np.array([_traffic(broker) for broker in given]).reshape(-1, 4).T
    return Brokers(
        names=tuple(names),
        resources=resources,
        traffic=traffic,
        smoothed_resources=resources,
        smoothed_traffic=traffic,
        topics=np.array([broker.topics for broker in given], dtype=np.int64),
        listed=np.array(
            [len(b.bundles) if b.listed is None else b.listed for b in given], dtype=np.int64
        ),
        available=np.array([broker.available for broker in given], dtype=np.bool_),
        averages=np.array([_averages(broker) for broker in given]).reshape(-1, 2).T,
        reported_ms=np.array([broker.reported_ms for broker in given], dtype=np.int64),
        relieved_ms=np.array([broker.relieved_ms for broker in given], dtype=np.int64),
        versions=tuple(broker.version for broker in given),
        load_managers=tuple(broker.load_manager for broker in given),
        persistent=np.array([broker.persistent for broker in given], dtype=np.bool_),
        limits=np.zeros((5, len(given))),
    )


def _traffic(broker: Broker) -> Floats:
    if broker.traffic is not None:
        return np.array(broker.traffic)
    total: Floats = np.array([b.short for b in broker.bundles]).reshape(-1, 4).sum(axis=0)
    return total


def _averages(broker: Broker) -> tuple[float, float]:
    traffic = _traffic(broker)
    return broker.usage, float(traffic[THROUGHPUT_IN] + traffic[THROUGHPUT_OUT])


def _counts(bundle: Bundle) -> tuple[int, int, int, int]:
    """Topics, consumers, producers and cache: half of the sessions are producers."""
    producers = bundle.sessions // 2
    return bundle.topics, bundle.sessions - producers, producers, 0


def _bundles(columns: _Columns) -> Bundles:
    given = columns.bundles
    namespace, namespaces = namespaces_of(columns.names)
    return Bundles(
        names=tuple(columns.names),
        namespace=namespace,
        namespaces=namespaces,
        owner=np.array(columns.owner, dtype=np.int64),
        short=np.array([b.short for b in given]).reshape(-1, 4).T,
        long=np.array([b.long or b.short for b in given]).reshape(-1, 4).T,
        reported=lambda: np.array([b.short for b in given]).reshape(-1, 4).T,
        counts=np.array([_counts(b) for b in given], np.int32).reshape(-1, 4).T,
        movable=np.array([b.movable and b.going_to is None for b in given], dtype=np.bool_),
    )
