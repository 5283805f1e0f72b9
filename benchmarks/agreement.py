"""Checks that two sides looked at the same cluster, and decided the same."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from trimtab.arrays import CACHE, RATE_IN, THROUGHPUT_IN, TOPICS
from trimtab.load import usage, usage_with_memory
from trimtab.plan import ShedWish
from trimtab.settings import WeightSettings
from trimtab.view import View

Moves = list[tuple[str, str, str | None]]
"""Bundle, source, and the destination where the strategy names one."""


class Disagreement(RuntimeError):
    """The two sides did not do the same, so that their figures cannot be compared."""


def same_cluster(view: View, weights: WeightSettings, theirs: list[float]) -> None:
    """Raise Disagreement unless ``theirs`` is the digest of the view."""
    ours = digest(view, weights)
    if ours != theirs:
        raise Disagreement(f"two clusters: {ours} here, {theirs} there")


def digest(view: View, weights: WeightSettings) -> list[float]:
    """Sums of what the strategies read, one by one in the order of rows."""
    bundles, brokers = view.bundles, view.brokers
    rows = (
        *bundles.short,
        *bundles.long,
        bundles.counts[TOPICS].astype(np.float64),
        *brokers.traffic,
        usage(brokers.resources, weights),
    )
    return [float(np.cumsum(row)[-1]) for row in rows]


def ties(view: View, weights: WeightSettings) -> list[str]:
    """What strategies sort by and is equal on two rows, where the order of a map would decide."""
    brokers, bundles = view.brokers, view.bundles
    columns = {
        "usage": usage(brokers.resources, weights),
        "usage with memory": usage_with_memory(brokers.resources, weights),
        "rate of a broker": brokers.traffic[RATE_IN] + brokers.traffic[RATE_IN + 1],
        "throughput of a broker": brokers.traffic[THROUGHPUT_IN : THROUGHPUT_IN + 2].sum(axis=0),
        "rate of a bundle": bundles.short[RATE_IN] + bundles.short[RATE_IN + 1],
        "throughput of a bundle": bundles.short[THROUGHPUT_IN : THROUGHPUT_IN + 2].sum(axis=0),
        "cache of a broker's bundle": bundles.owner + 1j * bundles.counts[CACHE],
    }
    return [name for name, column in columns.items() if len(np.unique(column)) < len(column)]


def named(sheds: Iterable[ShedWish], view: View) -> Moves:
    """The wishes, with names instead of rows."""
    brokers, bundles = view.brokers.names, view.bundles.names
    return [
        (
            bundles[shed.bundle],
            brokers[shed.source],
            None if shed.destination is None else brokers[shed.destination],
        )
        for shed in sheds
    ]


def differences(ours: Moves, theirs: Moves, ordered: bool) -> list[str]:
    """The sources whose moves differ; ``ordered``: also those that differ only in their order.

    The order of the brokers never counts: Pulsar's is that of a hash map.
    """
    mine, other = _by_source(ours, ordered), _by_source(theirs, ordered)
    return [
        f"{source}: {mine.get(source, [])} here, {other.get(source, [])} there"
        for source in sorted(mine.keys() | other.keys())
        if mine.get(source) != other.get(source)
    ]


def _by_source(moves: Moves, ordered: bool) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for bundle, source, destination in moves:
        found.setdefault(source, []).append((bundle, destination))
    return found if ordered else {source: sorted(each) for source, each in found.items()}
