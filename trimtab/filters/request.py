"""Where a bundle may go, and the load that is already on its way to each broker."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, TOPICS, Floats, Ints
from trimtab.filters.isolation import Permits
from trimtab.model import is_monitoring_namespace
from trimtab.view import MONITORING_PREFIXES, View


class Expected(NamedTuple):
    """The expected load of a bundle: long-term messages/s in and out together, and topics."""

    rate: float
    topics: int


class Projection:
    """The load of each broker after moves in flight and the plan so far have landed.

    It belongs to one plan and grows with it: the only mutable value here. Arrivals count at once
    and departures do not, as with Pulsar's preallocated bundles.
    """

    def __init__(self, view: View) -> None:
        brokers = len(view.brokers.names)
        self.view = view
        self._ranges: _Ranges | None = None
        self.arriving: Floats = np.zeros(brokers)
        """(n,) long-term messages/s, in and out, of bundles that will arrive."""
        self.topics: Ints = np.zeros(brokers, dtype=np.int64)
        """(n,) topics of bundles that will arrive."""
        self.most_topics = int(view.brokers.topics.max(initial=0))
        """Topics of the broker that will have the most."""
        for bundle in view.in_flight.tolist():
            self._expect(bundle, int(view.intended[bundle]))

    @cached_property
    def permits(self) -> Permits:
        """The view's isolation policies."""
        return Permits(self.view.policies, self.view.brokers)

    @cached_property
    def settled(self) -> Floats:
        """(n,) long-term messages/s, in and out, of the bundles on each broker."""
        bundles, brokers = self.view.bundles, len(self.view.brokers.names)
        # bincount adds in row order, so that a sum equals Pulsar's to the last bit.
        incoming = np.bincount(bundles.owner, bundles.long[RATE_IN], brokers)
        outgoing = np.bincount(bundles.owner, bundles.long[RATE_OUT], brokers)
        return (incoming + outgoing).astype(np.float64)

    def own_bundles(self) -> Ints:
        """(n,) bundles each broker will have with the moves in flight, without heartbeat and SLA
        bundles.

        Pulsar counts those, so its "sole bundle" protection never works on a broker that has any.
        """
        intended, bundles, brokers = self.view.intended, self.view.bundles, len(self.topics)
        counts: Ints = np.bincount(intended, minlength=brokers)
        # The prefixes alone rule out almost all of very many namespaces.
        monitoring = [
            row
            for row, name in enumerate(bundles.namespaces)
            if name.startswith(MONITORING_PREFIXES) and is_monitoring_namespace(name)
        ]
        if not monitoring:
            return counts
        bound = np.isin(bundles.namespace, monitoring)
        return counts - np.bincount(intended[bound], minlength=brokers)

    def request(self, bundle: int, source: int | None) -> Request:
        """Asks for bundle row ``bundle``; ``source`` is the broker row that it leaves, if any."""
        row = int(self.view.bundles.namespace[bundle])
        return Request(self, self.view.bundles.namespaces[row], row, source)

    def request_for(self, namespace: str, source: int | None = None) -> Request:
        """Asks for a bundle of ``namespace``, whether or not the view has one."""
        return Request(self, namespace, self._row_of.get(namespace, -1), source)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.view.bundles.namespaces)}

    def add(self, bundle: int, source: int, destination: int) -> None:
        """Count a planned move of bundle row ``bundle``."""
        self._expect(bundle, destination)
        if self._ranges is not None:
            counts = self._ranges.of(int(self.view.bundles.namespace[bundle]))
            counts[source] -= 1
            counts[destination] += 1

    def withdraw(self, bundle: int, source: int, destination: int) -> None:
        """Undo the count of the last planned move."""
        rates = self.view.bundles.long[:, bundle]
        self.arriving[destination] -= rates[RATE_IN] + rates[RATE_OUT]
        # The new maximum is not looked for: ``most_topics`` may be too high.
        self.topics[destination] -= int(self.view.bundles.counts[TOPICS, bundle])
        if self._ranges is not None:
            counts = self._ranges.of(int(self.view.bundles.namespace[bundle]))
            counts[source] += 1
            counts[destination] -= 1

    def expect(self, namespace: str, destination: int, load: Expected) -> None:
        """Count a bundle that ``destination`` will have and no available broker has now."""
        self.arriving[destination] += load.rate
        self.expect_topics(destination, load.topics)
        if namespace in self._row_of:
            self.ranges(self._row_of[namespace])[destination] += 1

    def ranges(self, namespace: int) -> Ints:
        """(n,) how many bundles of a namespace each broker will have; zeros for an unknown one."""
        if self._ranges is None:
            self._ranges = _Ranges(self.view)
        return self._ranges.of(namespace)

    def members(self, group: str) -> list[int]:
        """Rows of the namespaces in an anti-affinity group."""
        return self._members.get(group, [])

    @cached_property
    def _members(self) -> dict[str | None, list[int]]:
        rows: dict[str | None, list[int]] = {}
        for row, name in enumerate(self.view.bundles.namespaces):
            rows.setdefault(self.view.policies.group_of(name), []).append(row)
        return rows

    def _expect(self, bundle: int, destination: int) -> None:
        rates = self.view.bundles.long[:, bundle]
        self.arriving[destination] += rates[RATE_IN] + rates[RATE_OUT]
        self.expect_topics(destination, int(self.view.bundles.counts[TOPICS, bundle]))

    def expect_topics(self, destination: int, topics: int) -> None:
        self.topics[destination] += topics
        here = int(self.view.brokers.topics[destination] + self.topics[destination])
        self.most_topics = max(self.most_topics, here)


class _Ranges:
    """Bundles of a namespace on each broker, counted on demand: few namespaces are asked for."""

    def __init__(self, view: View) -> None:
        bundles = view.bundles
        self._owners = view.intended[np.argsort(bundles.namespace, kind="stable")]
        sizes = np.bincount(bundles.namespace, minlength=len(bundles.namespaces))
        self._ends: list[int] = np.cumsum(sizes).tolist()
        self._brokers = len(view.brokers.names)
        self._counts: dict[int, Ints] = {}

    def of(self, namespace: int) -> Ints:
        counts = self._counts.get(namespace)
        if counts is None:
            first, last = 0, 0
            if namespace >= 0:
                first, last = self._ends[namespace - 1] if namespace else 0, self._ends[namespace]
            counts = np.bincount(self._owners[first:last], minlength=self._brokers)
            self._counts[namespace] = counts
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Asks where a bundle of one namespace may go; filters look at nothing else of the bundle."""

    projection: Projection
    namespace: str
    row: int
    """The namespace's row in the view, -1 if it has no bundle there."""
    source: int | None = None
    """Row of the broker that the bundle leaves, which is no candidate; None if it has no owner."""

    @property
    def view(self) -> View:
        """The view whose brokers are the candidates."""
        return self.projection.view
