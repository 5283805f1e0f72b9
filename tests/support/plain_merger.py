"""The merger of cold neighbours once more, as plain as can be: every pair looked at, one by one.

Slow on purpose and sharing nothing with trimtab's columns but the settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from trimtab.settings import Settings
from trimtab.view import View

Pair = tuple[str, str]


@dataclass
class PlainBundle:
    name: str
    namespace: str
    low: int
    high: int
    broker: str
    since: int
    topics: int
    sessions: int
    rate: float
    throughput: float


def merged_pairs(view: View, settings: Settings) -> list[Pair]:
    """In the order in which they are granted."""
    limits, now, most = settings.merge, view.now_ms, settings.split.max_bundles
    pairs = [
        (_heat(one, other, settings), row, one, other)
        for row, (one, other) in enumerate(product(sorted(_bundles(view), key=_place), repeat=2))
        if (one.namespace, one.high, one.broker) == (other.namespace, other.low, other.broker)
    ]
    granted: list[Pair] = []
    gone: Counter[str] = Counter()
    for heat, _, one, other in sorted(pairs, key=lambda pair: pair[:2]):
        full = most and view.sizes[one.namespace] - gone[one.namespace] >= limits.share * most
        rested = max(one.since, other.since) < now - settings.round.grace_period * 1000
        taken = {name for pair in granted for name in pair}
        if heat <= limits.fraction and full and rested and not taken & {one.name, other.name}:
            granted.append((one.name, other.name))
            gone[one.namespace] += 1
    return granted[: limits.max_per_round] if limits.max_per_round else granted


def _bundles(view: View) -> Iterator[PlainBundle]:
    bundles = view.bundles
    for row, name in enumerate(bundles.names):
        if not bundles.movable[row]:
            continue
        namespace, _, ends = name.rpartition("/")
        low, high = (int(end, 16) for end in ends.split("_"))
        topics, consumers, producers, _ = (int(n) for n in bundles.counts[:, row])
        rate_in, rate_out, bytes_in, bytes_out = map(float, bundles.long[:, row])
        yield PlainBundle(
            name,
            namespace,
            low,
            high,
            view.brokers.names[bundles.owner[row]],
            view.records[name].since if name in view.records else -1,
            topics,
            consumers + producers,
            rate_in + rate_out,
            bytes_in + bytes_out,
        )


def _place(bundle: PlainBundle) -> tuple[str, int]:
    return bundle.namespace, bundle.low


def _heat(one: PlainBundle, other: PlainBundle, settings: Settings) -> float:
    limits = settings.split
    sessions = limits.max_sessions if limits.max_sessions > 0 else float("inf")
    return max(
        _part(one.topics + other.topics, limits.max_topics),
        _part(one.sessions + other.sessions, sessions),
        _part(one.rate + other.rate, limits.max_rate),
        _part(one.throughput + other.throughput, limits.max_throughput),
    )


def _part(load: float, limit: float) -> float:
    if limit > 0:
        return load / limit
    return float("inf") if load > 0 else 0.0
