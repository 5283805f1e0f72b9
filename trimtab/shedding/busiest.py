"""The movable bundles of a few brokers, largest first: what most shedders choose from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from trimtab.view import Floats, Ints, View


class Ranking:
    """Iterates over ``sources`` in their order: broker row, its bundle rows, their sizes.

    A size is a bundle's short-term traffic in and out: ``measure`` is RATE_IN or THROUGHPUT_IN for
    each source. Equal sizes keep the view's order. A source with no movable bundle is passed
    over.
    """

    def __init__(self, view: View, sources: Ints, measure: Ints) -> None:
        place = np.full(len(view.brokers.names), -1)
        place[sources] = np.arange(len(sources))
        at = place[view.bundles.owner]
        rows = np.flatnonzero((at >= 0) & view.bundles.movable)
        at = at[rows]
        short, incoming = view.bundles.short, measure[at]
        sizes = short[incoming, rows] + short[incoming + 1, rows]
        order = np.lexsort((-sizes, at))
        self._sources = sources
        self._rows: Ints = rows[order]
        self._sizes: Floats = sizes[order]
        self._ends = np.searchsorted(at[order], np.arange(len(sources) + 1))

    def __iter__(self) -> Iterator[tuple[int, Ints, Floats]]:
        bounds = pairwise(self._ends.tolist())
        for source, (first, last) in zip(self._sources.tolist(), bounds, strict=True):
            if first < last:
                yield source, self._rows[first:last], self._sizes[first:last]
