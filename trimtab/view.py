"""A whole cluster as columns: what a round looks at.

The order of the rows is the order of ties: by name in the job, Java's map order at the parity
tool's edge. Strategies see rows (integers), never names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from trimtab.model import namespace_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT = range(4)
"""Rows of every ``traffic`` matrix: messages/s in and out, bytes/s in and out."""

CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT = range(5)
"""Rows of every ``resources`` matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class Brokers:
    """The n brokers of a view."""

    names: tuple[str, ...]
    resources: Floats
    """(5, n) percent of each resource, Pulsar's binary32 percentages widened; unknown is 0."""
    traffic: Floats
    """(4, n) instantaneous, as reported."""
    topics: Ints
    listed: Ints
    """Bundles each broker says it has loaded: what "sole bundle" is judged by."""
    available: Bools
    """False for a broker that may not receive: silent, draining, unknown to the registry."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """The m bundles of a view that a broker reports and, unless observing only, a record owns."""

    names: tuple[str, ...]
    namespace: Ints
    """(m,) the same number for bundles of the same namespace, from 0 on; see `namespaces_of`."""
    owner: Ints
    """Broker row."""
    short: Floats
    """(4, m) averages over about 10 samples."""
    long: Floats
    """(4, m) averages over about 1000 samples."""
    topics: Ints
    epoch: Ints
    """(2, m) generation and counter of the record, 0 where there is none."""
    movable: Bools
    """False where a strategy must not look: heartbeat and SLA namespaces, recently unloaded, in
    flight, in conflict, not in its broker's ``bundles``."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The input of a round."""

    cluster: str
    brokers: Brokers
    bundles: Bundles
    intended: Ints
    """(m,) broker row once moves in flight have landed; else that of ``bundles.owner``."""


_MONITORING = re.compile(r"(?:pulsar|sla-monitor)/(?:[^/]+/)?[^/:]+:\d+/[^/]+")


def is_monitoring(bundle: str) -> bool:
    """Whether a bundle is of a heartbeat or SLA namespace: bound to its broker, never moved."""
    return bundle.startswith(("pulsar/", "sla-monitor/")) and bool(_MONITORING.fullmatch(bundle))


def namespaces_of(bundles: Iterable[str]) -> Ints:
    """(m,) numbers for ``Bundles.namespace``, in order of first appearance."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(namespace_of(b), len(numbers)) for b in bundles], dtype=np.int64
    )


def available_part(view: View) -> View:
    """The view without brokers that are not available, as strategies see it.

    A bundle on its way from such a broker counts as arrived, and is not movable; one on its way to
    it, or at home on it, is left out.
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
            topics=brokers.topics[here],
            listed=brokers.listed[here],
            available=brokers.available[here],
        ),
        bundles=Bundles(
            names=tuple(compress(bundles.names, kept.tolist())),
            namespace=bundles.namespace[kept],
            owner=row[owner[kept]],
            short=bundles.short[:, kept],
            long=bundles.long[:, kept],
            topics=bundles.topics[kept],
            epoch=bundles.epoch[:, kept],
            movable=movable[kept],
        ),
        intended=row[view.intended[kept]],
    )
