"""Merge cold bundles, to make room in namespaces that are close to their maximum of bundles.

a namespace is crowded while it has merge.share of split.max_bundles, or more, after the merges
  that are under way
load of a pair = its topics, sessions, long-term messages/s and long-term bytes/s, each as a part of
  its split limit (sessions only where they are limited); its heat = the largest of them
for each pair of neighbours of a crowded namespace, both movable and on one broker, coldest first:
  stop where its heat is above merge.fraction
  merge it unless one of the two is already in a pair, one's record is younger than
    round.grace_period, or the merges planned so far have already made enough room
  stop after merge.max_per_round, unless that is 0

Neighbours on different brokers are not merged: one would have to move first, which shedding
decides. Bundles that were split or moved lately are not merged: brokers report little of them at
first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.model import namespace_of
from trimtab.names import ranges_at
from trimtab.ownership import State
from trimtab.plan import MergeWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.splitting.triggers.limits import list_limits
from trimtab.view import Bundles, View


def merge(view: View, settings: Settings) -> Sequence[MergeWish]:
    """The pairs to merge, coldest first."""
    surplus = _surplus(view, settings)
    if not surplus:
        return ()
    lower, upper = _neighbours(view.bundles, surplus)
    heat = _heat(view.bundles, lower, upper, settings)
    cold = np.flatnonzero(heat <= settings.merge.fraction)
    cold = cold[np.argsort(heat[cold], kind="stable")]
    pairs = zip(lower[cold].tolist(), upper[cold].tolist(), strict=True)
    wishes = (
        MergeWish(*pair, Reason.COLD_NEIGHBOURS)
        for pair in _granted(view, pairs, surplus, settings)
    )
    return list(islice(wishes, settings.merge.max_per_round or None))


def _surplus(view: View, settings: Settings) -> dict[int, int]:
    """Row of each crowded namespace to its number of bundles in excess."""
    most = settings.merge.share * settings.split.max_bundles
    if not settings.split.max_bundles:
        return {}
    names = view.bundles.namespaces
    sizes = {row: view.sizes.get(name, 0) for row, name in enumerate(names)}
    sizes = {row: size for row, size in sizes.items() if size >= most}
    ending = _ending(view) if sizes else {}
    sizes = {row: size - ending.get(names[row], 0) for row, size in sizes.items()}
    return {row: size - math.ceil(most) + 1 for row, size in sizes.items() if size >= most}


def _ending(view: View) -> dict[str, int]:
    """How many bundles the merges under way will remove from each namespace."""
    merging = Counter(
        namespace_of(bundle)
        for bundle, record in view.records.items()
        if record.state is State.MERGING
    )
    # A merge has two records; a single one without its partner removes nothing.
    return {namespace: number // 2 for namespace, number in merging.items()}


def _neighbours(bundles: Bundles, crowded: dict[int, int]) -> tuple[Ints, Ints]:
    """(p,) lower and (p,) upper bundle rows of the pairs, ordered by namespace and range."""
    full = np.zeros(len(bundles.namespaces), dtype=np.bool_)
    full[list(crowded)] = True
    rows = np.flatnonzero(bundles.movable & full[bundles.namespace])
    low, high = ranges_at(bundles.names, rows).astype(np.int64)
    namespace = bundles.namespace[rows].astype(np.int64) << 32
    order = np.argsort(namespace | low, kind="stable")
    begins, ends = (namespace | low)[order], (namespace + high)[order]
    lower, upper = rows[order][:-1], rows[order][1:]
    adjacent = np.flatnonzero(ends[:-1] == begins[1:])
    adjacent = adjacent[bundles.owner[lower[adjacent]] == bundles.owner[upper[adjacent]]]
    return lower[adjacent], upper[adjacent]


def _heat(bundles: Bundles, lower: Ints, upper: Ints, settings: Settings) -> Floats:
    """(p,) a pair's largest load as a part of its split limit; infinite above a limit of 0."""
    heat = np.zeros(len(lower))
    for figure, limit in list_limits(bundles.counts, bundles.long, settings.split).values():
        load = figure[lower].astype(np.float64) + figure[upper]
        if limit > 0:
            with np.errstate(over="ignore"):
                load /= limit
        else:
            load[load > 0] = np.inf
        np.maximum(heat, load, out=heat)
    return heat


def _granted(
    view: View, pairs: Iterator[tuple[int, int]], surplus: Mapping[int, int], settings: Settings
) -> Iterator[tuple[int, int]]:
    taken, left = set[int](), dict(surplus)
    for pair in pairs:
        namespace = int(view.bundles.namespace[pair[0]])
        if left[namespace] > 0 and taken.isdisjoint(pair) and _rested(view, pair, settings):
            left[namespace] -= 1
            taken.update(pair)
            yield pair


def _rested(view: View, pair: tuple[int, int], settings: Settings) -> bool:
    """Whether neither record changed for the grace period; True without records (observe only)."""
    horizon = view.now_ms - settings.round.grace_period * 1000
    records = (view.records.get(view.bundles.names[row]) for row in pair)
    return all(record is None or record.since < horizon for record in records)
