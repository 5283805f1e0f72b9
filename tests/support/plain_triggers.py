"""The split triggers once more, as plain as can be: one loop each, straight from Pulsar's order.

Slow on purpose and sharing nothing with trimtab's columns but the settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from trimtab.settings import Settings, SplitSettings
from trimtab.view import View

Wish = tuple[str, str]
"""Bundle and reason."""


@dataclass
class PlainStats:
    name: str
    namespace: str
    low: int
    high: int
    topics: int
    sessions: int
    rate: float
    throughput: float

    def reason(self, limits: SplitSettings) -> str | None:
        if self.topics > limits.max_topics:
            return "too-many-topics"
        if limits.max_sessions > 0 and self.sessions > limits.max_sessions:
            return "too-many-sessions"
        if self.rate > limits.max_rate:
            return "too-many-messages"
        if self.throughput > limits.max_throughput:
            return "too-much-traffic"
        return None


def may_be_divided(view: View, rates: str) -> Iterator[PlainStats]:
    """The movable bundles of two topics or more; ``rates`` is a matrix of `Bundles`."""
    for row, name in enumerate(view.bundles.names):
        topics, consumers, producers, _ = (int(n) for n in view.bundles.counts[:, row])
        rate_in, rate_out, bytes_in, bytes_out = map(float, getattr(view.bundles, rates)[:, row])
        if view.bundles.movable[row] and topics >= 2:
            sessions, rate, throughput = (
                consumers + producers,
                rate_in + rate_out,
                bytes_in + bytes_out,
            )
            yield PlainStats(name, *_parts(name), topics, sessions, rate, throughput)


def _parts(name: str) -> tuple[str, int, int]:
    namespace, _, ends = name.rpartition("/")
    low, high = ends.split("_")
    return namespace, int(low, 16), int(high, 16)


class PlainLongTerm:
    """BundleSplitterTask; it remembers nothing."""

    def split(self, view: View, settings: Settings) -> list[Wish]:
        wishes: list[Wish] = []
        sizes = dict(view.sizes)
        for bundle in may_be_divided(view, "long"):
            reason = bundle.reason(settings.split)
            if reason and sizes.get(bundle.namespace, 10**9) < settings.split.max_bundles:
                sizes[bundle.namespace] += 1
                wishes.append((bundle.name, reason))
        return wishes


class PlainInstantaneous:
    """DefaultNamespaceBundleSplitStrategyImpl; ``hits`` is its history."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = {}

    def split(self, view: View, settings: Settings, whole: Collection[str]) -> list[Wish]:
        """``whole`` are the bundles that cannot be divided, asked for last."""
        limits = settings.split
        wishes: list[Wish] = []
        sizes = dict(view.sizes)
        self.hits = {name: n for name, n in self.hits.items() if name in view.bundles.names}
        for bundle in may_be_divided(view, "stats"):
            if bundle.high - bundle.low == 1:
                continue
            reason = bundle.reason(limits)
            if reason is None:
                self.hits.pop(bundle.name, None)
                continue
            self.hits[bundle.name] = self.hits.get(bundle.name, 0) + 1
            if self.hits[bundle.name] <= limits.hits or bundle.namespace not in sizes:
                continue
            if sizes[bundle.namespace] >= limits.max_bundles or _beside(bundle, view.splitting):
                continue
            if bundle.name not in whole:
                wishes.append((bundle.name, reason))
                sizes[bundle.namespace] += 1
                del self.hits[bundle.name]
                if len(wishes) == limits.max_per_round:
                    return wishes
        return wishes


def _beside(bundle: PlainStats, splitting: Collection[str]) -> bool:
    for other in splitting:
        namespace, low, high = _parts(other)
        if namespace == bundle.namespace and (low == bundle.low or high == bundle.high):
            return True
    return False
