"""A broker of a story: it holds what it is given, and its load follows what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tests.transcripts.names import Names
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource

TOPICS: Final = 10
"""Of each bundle, with one producer and one consumer each; a child has as many."""
RATE: Final = 100.0
"""Messages/s that 1 MB/s is made of."""


@dataclass(slots=True)
class StoryBroker:
    """An `agent.broker.Broker` that holds what it is given."""

    name: str
    names: Names
    traffic: dict[str, float]
    """MB/s of every bundle of the fleet."""
    started_ms: int
    rng: np.random.Generator
    """Each broker has its own: what one does changes no other's noise."""
    session: int = 1
    loaded: set[str] = field(default_factory=set)
    noise: float = 0.0
    extra: float = 0.0
    up: bool = True
    obeys: bool = True

    def bundles(self) -> set[str]:
        return self.loaded

    def load_report(self) -> LocalBrokerData:
        """Usage is the traffic of all bundles, and what no traffic explains."""
        stats = {}
        for bundle in sorted(self.loaded):
            shown = self.traffic[bundle] * max(0.0, self.rng.normal(1.0, self.noise))
            stats[bundle] = BundleStats(
                msg_rate_in=RATE * shown,
                msg_throughput_in=1e6 * shown,
                topics=TOPICS,
                producer_count=TOPICS,
                consumer_count=TOPICS,
            )
        total = sum(each.msg_throughput_in for each in stats.values()) / 1e6
        return LocalBrokerData(
            cpu=Resource(total + self.extra, 100.0),
            msg_rate_in=RATE * total,
            msg_throughput_in=1e6 * total,
            last_stats=stats,
            bundles=[*stats],
            num_topics=TOPICS * len(stats),
            start_timestamp=self.started_ms,
        )

    def prepare(self, bundle: str) -> None:
        """Nothing to warm."""

    def load(self, bundle: str) -> None:
        self.loaded.add(bundle)

    def unload(self, bundle: str) -> None:
        self.loaded.discard(bundle)

    def topics(self, bundle: str) -> Mapping[int, tuple[float, ...]]:  # noqa: ARG002 - of any
        return {}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self.loaded.discard(bundle)
        self.loaded.update(children)
        self.names.note_split(bundle, children)
        self.traffic |= dict.fromkeys(children, self.traffic[bundle] / len(children))

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self.loaded.difference_update(parts)
        self.loaded.add(whole)
        self.names.note_merge(parts, whole)
        self.traffic[whole] = sum(self.traffic[part] for part in parts)
