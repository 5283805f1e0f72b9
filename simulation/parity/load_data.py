"""The extensible manager's load data as views: a report of each broker, kept between turns.

Brokers are in the order of Pulsar's map, which is kept as well, and Pulsar's partial sort breaks
ties among bundles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np

from simulation.parity.cases import Json, brokers_of, counts_of, stats_of
from simulation.parity.java_maps import ConcurrentHashMap, HashMap
from trimtab.arrays import THROUGHPUT, USAGE, Floats, Ints
from trimtab.settings import Settings
from trimtab.state.broker_averages import BrokerAverages, advance, remember_averages
from trimtab.view import Brokers, Bundles, View, namespaces_of

NOW_MS: Final = 10**12
_OVERRIDES: Final = {"weightedMaxEMA": USAGE, "msgThroughputEMA": THROUGHPUT}


@dataclass
class Reports:
    """BrokerLoadData of every broker, fed with one sample a turn."""

    order: HashMap = field(default_factory=ConcurrentHashMap)
    past: BrokerAverages = field(default_factory=BrokerAverages)

    def update(self, given: Mapping[str, Json], settings: Settings) -> None:
        reporting = {name: b for name, b in given.items() if not b.get("noLoadData", False)}
        for name in reporting:
            self.order.put(name)
        self.order.retain(reporting)
        brokers = self._columns(reporting)
        averages = advance(replace(self.past, reported_ms={}), brokers, settings.weights)
        for row, name in enumerate(brokers.names):
            for key, figure in _OVERRIDES.items():
                if key in given[name]:
                    averages[figure, row] = float(given[name][key])
        self.past = remember_averages(brokers, averages)

    def brokers(self, given: Mapping[str, Json], others: Iterable[str]) -> Brokers:
        """The brokers that reported, in the map's order, then the others."""
        known = self._columns(given)
        averages = [[of.get(n, np.nan) for n in known.names] for of in self._averages()]
        missing = [name for name in dict.fromkeys(others) if name not in known.names]
        rest = brokers_of({name: {} for name in missing}, missing)
        return join_brokers(replace(known, averages=np.array(averages).reshape(2, -1)), rest)

    def trace(self) -> Json:
        usage, throughput = self._averages()
        averages = {name: [usage[name], throughput[name]] for name in sorted(self.order)}
        return {"brokerOrder": list(self.order), "ema": averages}

    def _averages(self) -> tuple[dict[str, float], dict[str, float]]:
        return self.past.usage, self.past.throughput

    def _columns(self, given: Mapping[str, Json]) -> Brokers:
        names = list(self.order)
        brokers = {name: {"bundles": [], **given[name]} for name in names}
        ages = [int(given[name].get("updatedAgoMs", 0)) for name in names]
        reported = np.array([NOW_MS - age for age in ages], dtype=np.int64)
        return replace(brokers_of(brokers, names), reported_ms=reported)


def join_brokers(known: Brokers, rest: Brokers) -> Brokers:
    """Concatenate two sets of brokers, in that order."""
    parts: dict[str, Any] = {}
    for each in fields(Brokers):
        first, second = getattr(known, each.name), getattr(rest, each.name)
        plain = isinstance(first, tuple)
        parts[each.name] = first + second if plain else np.concatenate((first, second), axis=-1)
    return Brokers(**parts)


@dataclass(frozen=True)
class Listing:
    """A bundle: the broker that lists it, and its holder by the channel; rows of brokers."""

    bundle: str
    lister: int
    holder: int
    stats: Json
    may_go: bool = True


def view_of(brokers: Brokers, listings: Sequence[Listing], recent: Iterable[str]) -> View:
    """A view of the listed bundles; their intended broker is the holder."""
    names = [each.bundle for each in listings]
    resting = set(recent)
    namespace, namespaces = namespaces_of(names)
    reported = [each.stats for each in listings]
    stats = stats_of(reported)
    return View(
        cluster="parity",
        brokers=brokers,
        bundles=Bundles(
            names=tuple(names),
            namespace=namespace,
            namespaces=namespaces,
            owner=np.array([each.lister for each in listings], dtype=np.int64),
            short=stats,
            long=stats,
            reported=lambda: stats,
            counts=counts_of(reported),
            movable=np.array([e.may_go and e.bundle not in resting for e in listings], np.bool_),
        ),
        intended=np.array([each.holder for each in listings], dtype=np.int64),
        now_ms=NOW_MS,
    )


class PartialSortFailed(ValueError):
    """Raised where Pulsar cannot sort the front of an empty list of bundles."""


def partial_sort(sizes: Floats, most: int) -> Ints:
    """The order that TopKBundles.partitionSort leaves, before it sorts the front."""
    values = [tuple(reversed(size)) for size in sizes.T.tolist()]
    order = list(range(len(values)))
    start, end, target = 0, len(order) - 1, min(most, len(order)) - 1
    if not order:
        return np.array(order, dtype=np.int64)
    while start < end:
        low, middle, high = start, start, end
        pivot = values[order[high]]
        while middle <= high:
            value = values[order[middle]]
            if pivot < value:
                order[low], order[middle] = order[middle], order[low]
                low, middle = low + 1, middle + 1
            elif pivot > value:
                order[middle], order[high] = order[high], order[middle]
                high -= 1
            else:
                middle += 1
        if low <= target < middle:
            break
        start, end = (start, low - 1) if target < low else (middle, end)
    if end < 0:
        raise PartialSortFailed(f"fromIndex(0) > toIndex({end})")
    return np.array(order, dtype=np.int64)
