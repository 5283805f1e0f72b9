"""Namespaces' edges, read from the bundle index and cached until a bundle is found gone."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from agent.lookup.single_flight import SingleFlight
from sinks.redis.bundle_index import BundleIndex
from trimtab.store.lookup import edges_of
from trimtab.store.ring import row_at

MOST_NAMESPACES: Final = 5_000
"""Most namespaces cached at once: with 100 bundles each, some 70 MB. The oldest read is dropped."""


class UnknownNamespace(LookupError):
    """The index has no bundle of the namespace."""


class _Ring(NamedTuple):
    edges: list[int]
    bundles: list[str]


class Edges:
    """The edges of one cluster; any number of threads may use it."""

    def __init__(self, cluster: str, index: BundleIndex) -> None:
        self._cluster = cluster
        self._index = index
        self._lock = threading.Lock()
        self._rings: dict[str, _Ring] = {}
        self._reads: SingleFlight[str, _Ring] = SingleFlight()

    def bundle_at(self, namespace: str, where: int, *, afresh: bool) -> str:
        """The bundle that holds a ring position; ``afresh``: read the index again.

        Raises UnknownNamespace, NotTiling and BundleIndex's errors.
        """
        # No lock: every lookup passes here, and reading one dict is enough.
        ring = None if afresh else self._rings.get(namespace)
        if ring is None:
            ring = self._reads.run(namespace, lambda: self._read(namespace))
        return ring.bundles[row_at(ring.edges, where)]

    def _read(self, namespace: str) -> _Ring:
        bundles = self._index.bundles(self._cluster, namespace)
        if not bundles:
            raise UnknownNamespace(f"no bundles in {self._cluster}: create it, or correct the name")
        ring = _Ring(edges_of(bundles), bundles)
        with self._lock:
            self._rings.pop(namespace, None)
            self._rings[namespace] = ring
            if len(self._rings) > MOST_NAMESPACES:
                del self._rings[next(iter(self._rings))]
        return ring
