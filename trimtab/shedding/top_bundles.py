"""The largest bundles of a broker, the smallest of them first (Pulsar TopKBundles).

Sizes are compared in units: first bytes/s in and then out in 100,000, messages/s in 100, topics and
sessions in 500, cache in 100,000 bytes. Bundles without traffic, of the system namespace, and
(unless `with_policies`) under a policy are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trimtab.arrays import (
    CACHE,
    CONSUMERS,
    PRODUCERS,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    TOPICS,
    Bools,
    Floats,
    Ints,
)
from trimtab.model import is_monitoring_namespace
from trimtab.settings import Settings
from trimtab.view import View

_SYSTEM = "pulsar/system"


class TopBundles:
    """The largest bundles of one view, by broker.

    ``ties`` maps the sizes of k bundles, (5, k) with the least significant first, to the order in
    which equal ones are taken; by default the view's order.
    """

    def __init__(
        self, view: View, settings: Settings, ties: Callable[[Floats], Ints] | None = None
    ) -> None:
        self._view, self._limits, self._ties = view, settings.transfer, ties
        owner = view.bundles.owner
        self._rows: Ints | None = None
        if (owner[1:] < owner[:-1]).any():
            # NumPy sorts 16-bit integers by radix, ten times as fast as longer ones.
            short = owner.astype(np.int16) if len(view.brokers.names) < 2**15 else owner
            self._rows = np.argsort(short, kind="stable")
            owner = owner[self._rows]
        self._starts: list[int] = np.searchsorted(
            owner, np.arange(len(view.brokers.names) + 1)
        ).tolist()
        self._bound: dict[int, bool] = {}

    def of(self, broker: int) -> Ints:
        """At most ``transfer.top_bundles`` bundle rows of a broker row."""
        place = slice(self._starts[broker], self._starts[broker + 1])
        rows = np.arange(place.start, place.stop) if self._rows is None else self._rows[place]
        stats = self._view.bundles.stats[:, rows]
        rows = rows[(stats[THROUGHPUT_IN] + stats[THROUGHPUT_OUT] != 0) & self._free(rows)]
        sizes = self._sizes(rows)
        if self._ties is not None:
            order = self._ties(sizes)
            rows, sizes = rows[order], sizes[:, order]
        largest: Ints = rows[np.lexsort(-sizes)[: self._limits.top_bundles]]
        return largest[::-1]

    def _sizes(self, rows: Ints) -> Floats:
        stats = self._view.bundles.stats[:, rows]
        counts = self._view.bundles.counts[:, rows].astype(np.int64)
        served = counts[TOPICS] + counts[CONSUMERS] + counts[PRODUCERS]
        return np.stack(
            (
                counts[CACHE],
                served // 500,
                _steps(stats[RATE_IN] + stats[RATE_OUT], 100),
                _steps(stats[THROUGHPUT_OUT], 100_000),
                _steps(stats[THROUGHPUT_IN], 100_000),
            )
        )

    def _free(self, rows: Ints) -> Bools:
        namespaces = self._view.bundles.namespace[rows]
        bound = [each for each in set(namespaces.tolist()) if self._is_bound(each)]
        return ~np.isin(namespaces, bound) if bound else np.ones(len(rows), np.bool_)

    def _is_bound(self, namespace: int) -> bool:
        """Whether bundles of the namespace stay: a system namespace, or one that a policy binds."""
        known = self._bound.get(namespace)
        if known is None:
            name = self._view.bundles.namespaces[namespace]
            kept = not self._limits.with_policies and self._view.policies.binds(name)
            monitoring = is_monitoring_namespace(name)
            known = self._bound[namespace] = name == _SYSTEM or kept or monitoring
        return known


def _steps(values: Floats, step: float) -> Floats:
    # Java's Math.round rounds a half up.
    return np.floor(values / step + 0.5)
