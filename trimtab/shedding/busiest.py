"""The movable bundles of a few brokers, largest first: the choices of most shedders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from trimtab.arrays import THROUGHPUT_IN, Bools, Floats, Ints
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.view import Brokers, View

MARGIN: Final = 0.05
"""Pulsar's ADDITIONAL_THRESHOLD_PERCENT_MARGIN: shed to a little below the threshold."""


def traffic(brokers: Brokers, measure: int) -> Floats:
    """(n,) traffic in and out together; ``measure`` is RATE_IN or THROUGHPUT_IN."""
    both: Floats = brokers.traffic[measure] + brokers.traffic[measure + 1]
    return both


def largest_first(view: View, sources: Ints, measure: Ints) -> Iterator[tuple[int, Ints, Floats]]:
    """For each of ``sources``, in their order: broker row, its bundle rows, their sizes.

    A size is a bundle's short-term traffic in and out: ``measure`` is RATE_IN or THROUGHPUT_IN for
    each source. Equal sizes keep the view's order. A source with no movable bundle is skipped.
    """
    place = np.full(len(view.brokers.names), -1)
    place[sources] = np.arange(len(sources))
    at = place[view.bundles.owner]
    rows = np.flatnonzero((at >= 0) & view.bundles.movable)
    # NumPy sorts 16-bit integers by radix, ten times as fast as a general stable sort; and sorting
    # each broker's few bundles by size is three times as fast as one sort of all of them.
    at = at[rows].astype(np.int16 if len(sources) < 2**15 else np.int64)
    rows = rows[np.argsort(at, kind="stable")]
    ends = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=len(sources)))))
    short, sizes_of = view.bundles.short, zip(sources.tolist(), measure.tolist(), strict=True)
    for (source, incoming), (first, last) in zip(sizes_of, pairwise(ends.tolist()), strict=True):
        if first < last:
            own = rows[first:last]
            sizes = short[incoming, own] + short[incoming + 1, own]
            order = np.argsort(-sizes, kind="stable")
            yield source, own[order], sizes[order]


def take_until(view: View, need: Floats, chosen: Bools, reason: Reason) -> list[ShedWish]:
    """Take the largest bundles of each chosen broker until ``need`` (n,) bytes/s are covered.

    At least one, however large (Pulsar OverloadShedder and ThresholdShedder).
    """
    sources = np.flatnonzero(chosen)
    measure = np.full(len(sources), THROUGHPUT_IN)
    sheds = []
    for source, rows, sizes in largest_first(view, sources, measure):
        covered = np.cumsum(sizes[:-1])
        count = 1 + int(np.count_nonzero(covered < need[source]))
        sheds += [ShedWish(row, source, reason) for row in rows[:count].tolist()]
    return sheds
