"""A whole cluster as columns: the input of a round.

The row order breaks ties: by name in the job, Java's map order at the parity tool's edge.
Strategies see rows (integers), never names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Counts, Floats, Ints
from trimtab.controls import NO_CONTROLS, Controls
from trimtab.model import NO_EPOCH, Epoch, is_monitoring_namespace, namespace_of
from trimtab.names import kept as kept_names
from trimtab.policies import NO_POLICIES, Policies
from trimtab.repair_needs import NOTHING_TO_REPAIR, RepairNeeds
from trimtab.wire.ownership import Record


@dataclass(frozen=True, slots=True, eq=False)
class Brokers:
    """The n brokers of a view."""

    names: tuple[str, ...]
    resources: Floats
    """(5, n) percent of each resource: Pulsar's binary32 percentages as binary64; unknown is 0."""
    traffic: Floats
    """(4, n) instantaneous, as reported."""
    smoothed_resources: Floats
    """(5, n) and"""
    smoothed_traffic: Floats
    """(4, n) the same as averages over time (`trimtab.intake.snapshot.Snapshot.smoothed`)."""
    topics: Ints
    listed: Ints
    """How many bundles each broker says it has loaded; tells whether a bundle is its only one."""
    available: Bools
    """False for a broker that may not receive bundles: lost, held back or draining."""
    averages: Floats
    """(2, n) usage as a fraction, memory included, and bytes/s in and out, from
    `trimtab.state.broker_averages`."""
    reported_ms: Ints
    """When its newest report was appended; 0 for a broker that has not reported."""
    relieved_ms: Ints
    """When a round last took a bundle off it; 0 if none did."""
    versions: tuple[str, ...]
    load_managers: tuple[str, ...]
    """Class names; empty where the broker does not report one."""
    persistent: Bools
    """Whether it serves persistent topics."""
    limits: Floats
    """(5, n) limits of the resources as reported, in their units; unknown is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """The m bundles of a view: reported by a broker and, unless observing only, owned by it on
    record."""

    names: Sequence[str]
    namespace: Counts
    """(m,) row in ``namespaces``."""
    namespaces: tuple[str, ...]
    owner: Ints
    """Broker row."""
    short: Floats
    """(4, m) averages over about 10 samples."""
    long: Floats
    """(4, m) averages over about 1000 samples."""
    reported: Callable[[], Floats]
    """Returns ``stats``: few strategies need them, so they are gathered only on request."""
    counts: Counts
    """(4, m) as last reported."""
    movable: Bools
    """False for a bundle that strategies must not move: heartbeat or SLA namespace, recently
    unloaded, in flight, in conflict, not in its broker's ``bundles``."""

    @property
    def stats(self) -> Floats:
        """(4, m) as last reported."""
        return self.reported()

    def part(self, mask: Bools) -> Bundles:
        """The bundles that a mask (m,) selects."""
        return Bundles(
            names=kept_names(self.names, mask),
            namespace=self.namespace[mask],
            namespaces=self.namespaces,
            owner=self.owner[mask],
            short=self.short[:, mask],
            long=self.long[:, mask],
            reported=cache(lambda: self.stats[:, mask]),
            counts=self.counts[:, mask],
            movable=self.movable[mask],
        )


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The input of a round."""

    cluster: str
    brokers: Brokers
    bundles: Bundles
    intended: Ints
    """(m,) broker row after moves in flight have landed; otherwise the row in ``bundles.owner``."""
    policies: Policies = NO_POLICIES
    controls: Controls = NO_CONTROLS
    """The modes of namespaces, pins and budgets in force."""
    now_ms: int = 0
    """The round's time, on the clock of ``Brokers.relieved_ms``."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How many bundles each namespace has, by the records."""
    records: Mapping[str, Record] = field(default_factory=dict)
    """The ownership records, for the epochs; none while observing only."""
    splitting: frozenset[str] = frozenset()
    """Bundles that are being split, by the records, even if no broker reports them, and those that
    this round splits."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Bundle to the broker that a round of the last hour took it from, as strategies see it."""
    trouble: RepairNeeds = NOTHING_TO_REPAIR

    @property
    def in_flight(self) -> Ints:
        """(k,) rows of the bundles that are on the way to another broker."""
        return np.flatnonzero(self.intended != self.bundles.owner)

    def epoch(self, bundle: str) -> Epoch:
        """The epoch of a bundle's record; NO_EPOCH without one."""
        record = self.records.get(bundle)
        return NO_EPOCH if record is None else record.epoch


def is_monitoring(bundle: str) -> bool:
    """Whether a bundle belongs to a heartbeat or SLA namespace: tied to its broker, never moved."""
    # Few do, and the prefix test is cheap.
    return bundle.startswith(MONITORING_PREFIXES) and is_monitoring_namespace(namespace_of(bundle))


def spreads_always(namespace: str) -> bool:
    """Whether Pulsar spreads the namespace's bundles by count, whatever the settings say."""
    return f"{namespace}/".startswith("pulsar/system/")


MONITORING_PREFIXES: Final = ("pulsar/", "sla-monitor/")
"""How the names of monitoring bundles begin, and of few others."""


def namespaces_of(bundles: Iterable[str]) -> tuple[Counts, tuple[str, ...]]:
    """``Bundles.namespace`` and ``Bundles.namespaces``, in order of first appearance."""
    numbers: dict[str, int] = {}
    # As `namespace_of` does, without a call for each of a million.
    column = [numbers.setdefault(b.rsplit("/", 1)[0], len(numbers)) for b in bundles]
    return np.array(column, dtype=np.int32), tuple(numbers)


def available_part(view: View) -> View:
    """The view without unavailable brokers, as strategies see it.

    A bundle in flight from such a broker counts as arrived and is not movable; a bundle in flight
    to it, or on it, is left out.
    """
    here = view.brokers.available
    if here.all():
        return view
    brokers, bundles = view.brokers, view.bundles
    owner = np.where(here[bundles.owner], bundles.owner, view.intended)
    kept = here[view.intended]
    row = np.cumsum(here) - 1
    movable = bundles.movable & (bundles.owner == view.intended)
    return replace(
        view,
        brokers=Brokers(
            names=tuple(compress(brokers.names, here.tolist())),
            resources=brokers.resources[:, here],
            traffic=brokers.traffic[:, here],
            smoothed_resources=brokers.smoothed_resources[:, here],
            smoothed_traffic=brokers.smoothed_traffic[:, here],
            topics=brokers.topics[here],
            listed=brokers.listed[here],
            available=brokers.available[here],
            averages=brokers.averages[:, here],
            reported_ms=brokers.reported_ms[here],
            relieved_ms=brokers.relieved_ms[here],
            versions=tuple(compress(brokers.versions, here.tolist())),
            load_managers=tuple(compress(brokers.load_managers, here.tolist())),
            persistent=brokers.persistent[here],
            limits=brokers.limits[:, here],
        ),
        bundles=replace(bundles.part(kept), owner=row[owner[kept]], movable=movable[kept]),
        intended=row[view.intended[kept]],
    )
