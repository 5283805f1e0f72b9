"""Turns a case of the recorded format into views, with rows in the order of Java's maps.

It reads brokers, bundles and settings; the other modules' operations answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from simulation.parity.java_maps import ConcurrentHashMap, HashMap
from trimtab.arrays import CACHE, CACHE_STEP, Counts, Floats
from trimtab.intake import averages
from trimtab.load import percentages
from trimtab.settings import Settings, catalogue, unread_spellings
from trimtab.view import Brokers, Bundles, View, namespaces_of

Json = dict[str, Any]

RESOURCES: Final = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
FOUR: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
_COUNTS: Final = ("topics", "consumerCount", "producerCount", "cacheSize")
DEFAULTS: Final = dict(zip(FOUR, averages.DEFAULT_STATS, strict=True))
UNKNOWN_BUNDLE: Final = {"shortTerm": DEFAULTS, "longTerm": DEFAULTS}
KEYS: Final = frozenset(
    key
    for _, _, known in catalogue()
    if known.alias is not None
    for key in (known.alias.key, known.alias.misspelt)
    if key is not None
)


def rounds_of(case: Json) -> list[Json]:
    rounds: list[Json] = case.get("rounds", [case])
    return rounds


def conf_of(case: Json, turn: Json) -> Json:
    """Pulsar's settings in a turn: the case's, overridden by the turn's."""
    return {**case.get("conf", {}), **turn.get("conf", {})}


def settings_of(case: Json, turn: Json) -> Settings:
    conf = conf_of(case, turn)
    unread = unread_spellings(conf)
    read = {key: value for key, value in conf.items() if key in KEYS and key not in unread}
    return Settings.parse(read)


def add_trace(case: Json, answered: Json) -> Json:
    """The answer, with its trace only if the case asks for one."""
    kept: Json = {k: v for k, v in answered.items() if k != "trace" or case.get("trace", False)}
    return kept


def numbers(source: Json, keys: Sequence[str]) -> list[float]:
    return [float(source.get(key, 0.0)) for key in keys]


def percent(broker: Json) -> np.ndarray:
    given = [broker.get(key) or {} for key in RESOURCES]
    used = np.array([float(resource.get("usage", 0.0)) for resource in given])
    limit = np.array([float(resource.get("limit", 0.0)) for resource in given])
    return percentages(used, limit)


def list_bundles(broker: Json) -> list[str]:
    listed: list[str] = broker["bundles"] if "bundles" in broker else [*broker.get("lastStats", {})]
    return list(dict.fromkeys(listed))


def aggregate_stats(broker: Json) -> Json:
    """Sum up a broker that has only ``lastStats``, as Pulsar does."""
    if "bundles" in broker or "lastStats" not in broker:
        return broker
    stats = [*broker["lastStats"].values()]
    totals = {key: sum_in_order(s.get(key, 0.0) for s in stats) for key in FOUR}
    return {**broker, **totals, "numTopics": sum(int(s.get("topics", 0)) for s in stats)}


def sum_in_order(values: Iterable[float]) -> float:
    """Java's sum: one by one, where Python's `sum` may compensate."""
    total = 0.0
    for value in values:
        total += value
    return total


def brokers_of(brokers: Mapping[str, Json], order: Iterable[str]) -> Brokers:
    names = tuple(order)
    given = [aggregate_stats(brokers[name]) for name in names]
    resources = np.array([percent(broker) for broker in given]).reshape(-1, 5).T
    traffic = np.array([numbers(broker, FOUR) for broker in given]).reshape(-1, 4).T
    return Brokers(
        names=names,
        resources=resources,
        traffic=traffic,
        smoothed_resources=resources,
        smoothed_traffic=traffic,
        topics=np.array([int(broker.get("numTopics", 0)) for broker in given], dtype=np.int64),
        listed=np.array([len(list_bundles(broker)) for broker in given], dtype=np.int64),
        available=np.ones(len(names), dtype=np.bool_),
        averages=np.full((2, len(names)), np.nan),
        reported_ms=np.zeros(len(names), dtype=np.int64),
        relieved_ms=np.zeros(len(names), dtype=np.int64),
        versions=("",) * len(names),
        load_managers=("",) * len(names),
        persistent=np.ones(len(names), dtype=np.bool_),
        limits=np.zeros((5, len(names))),
    )


def view_of(
    turn: Json, brokers: Brokers, order: Iterable[str], movable: Callable[[str], bool]
) -> View:
    """A view of the bundles that some broker lists, those of ``order`` first, in that order."""
    row_of = {name: row for row, name in enumerate(brokers.names)}
    owner = {
        bundle: row_of[name]
        for name, broker in turn["brokers"].items()
        for bundle in list_bundles(broker)
    }
    names = [b for b in dict.fromkeys([*order, *owner]) if b in owner]
    known = turn.get("bundles", {})
    given = [known.get(name, UNKNOWN_BUNDLE) for name in names]
    owners = np.array([owner[name] for name in names], dtype=np.int64)
    namespace, namespaces = namespaces_of(names)
    return View(
        cluster="parity",
        brokers=brokers,
        bundles=Bundles(
            names=tuple(names),
            namespace=namespace,
            namespaces=namespaces,
            owner=owners,
            short=np.array([numbers(b["shortTerm"], FOUR) for b in given]).reshape(-1, 4).T,
            long=np.array([numbers(b["longTerm"], FOUR) for b in given]).reshape(-1, 4).T,
            reported=lambda: np.zeros((4, len(names))),
            counts=counts_of([{"topics": b.get("topics", 0)} for b in given]),
            movable=np.array([n in known and movable(n) for n in names], dtype=np.bool_),
        ),
        intended=owners,
    )


@dataclass
class LoadData:
    """The order of LoadData's maps, which persist when a case updates its data in place."""

    in_place: bool
    brokers: HashMap = field(default_factory=ConcurrentHashMap)
    bundles: HashMap = field(default_factory=ConcurrentHashMap)

    def update(self, turn: Json) -> None:
        if not self.in_place:
            self.brokers, self.bundles = ConcurrentHashMap(), ConcurrentHashMap()
        for order, keys in (
            (self.bundles, turn.get("bundles", {})),
            (self.brokers, turn["brokers"]),
        ):
            for key in keys:
                order.put(key)
            order.retain(keys)


def stats_of(reported: Iterable[Json]) -> Floats:
    """(4, m) traffic of bundles, from their statistics."""
    return np.array([numbers(stats, FOUR) for stats in reported]).reshape(-1, 4).T


def counts_of(reported: Iterable[Json]) -> Counts:
    """(4, m) topics, consumers, producers and cache of bundles, from their statistics."""
    rows = [[int(stats.get(key, 0)) for key in _COUNTS] for stats in reported]
    counts = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    counts[CACHE] //= CACHE_STEP
    return counts.astype(np.int32)


def rows_of(view: View, names: Iterable[str]) -> np.ndarray:
    row_of = {name: row for row, name in enumerate(view.brokers.names)}
    return np.array([row_of[name] for name in names if name in row_of], dtype=np.int64)
