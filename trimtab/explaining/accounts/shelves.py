"""What a strategy that takes a broker's largest bundles first takes before a given bundle."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.view import View


class Shelves:
    """A view's movable bundles by broker; ``measure`` is RATE_IN or THROUGHPUT_IN, in and out."""

    def __init__(self, view: View) -> None:
        self._view = view

    def larger(self, bundle: int, measure: int) -> tuple[int, float]:
        """How many bundles of its broker are taken before a bundle, and their total size."""
        bundles = self._view.bundles
        rows = self._of(int(bundles.owner[bundle]))
        rows = rows[bundles.movable[rows]]
        sizes = self._sizes(rows, measure)
        order = np.argsort(-sizes, kind="stable")
        place = int(np.flatnonzero(rows[order] == bundle)[0])
        # Added one by one, as the strategy adds up what is covered.
        return place, float(np.cumsum(sizes[order])[place - 1]) if place else 0.0

    def size(self, bundle: int, measure: int) -> float:
        """The bundle's short-term messages/s or bytes/s."""
        return float(self._sizes(np.array([bundle]), measure)[0])

    def _sizes(self, rows: Ints, measure: int) -> Floats:
        short = self._view.bundles.short
        sizes: Floats = short[measure, rows] + short[measure + 1, rows]
        return sizes

    def _of(self, broker: int) -> Ints:
        order, ends = self._by_broker
        return order[ends[broker] : ends[broker + 1]]

    @cached_property
    def _by_broker(self) -> tuple[Ints, Ints]:
        owner, brokers = self._view.bundles.owner, len(self._view.brokers.names)
        # NumPy sorts 16-bit integers by radix.
        short = owner.astype(np.int16) if brokers < 2**15 else owner
        order = np.argsort(short, kind="stable")
        return order, np.append(0, np.cumsum(np.bincount(owner, minlength=brokers)))
