"""How many brokers a cluster needs, by the usage that its rounds recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from control.rounds import find_since
from simulation.replay.batch_records import decode_values
from simulation.replay.recorded import RecordedTopics
from trimtab.wire import keys

_DAY_MS: Final = 86_400_000
SPARE: Final = 1
"""Brokers that may be lost at the peak before the rest is above the threshold."""


class Demand(NamedTuple):
    """The load of a cluster in one round."""

    at: int
    """Batch timestamp (epoch ms)."""
    brokers: int
    usage_mean: float
    """A fraction."""

    @property
    def whole(self) -> float:
        """The load in brokers that it would fill."""
        return self.brokers * self.usage_mean


def whole_load(summary: Mapping[str, float]) -> float:
    """The load of a round's summary, in brokers that it would fill."""
    return summary.get("brokers", 0.0) * summary.get("usage_mean", 0.0)


class _Round(msgspec.Struct):
    cluster: str
    at: int
    summary: dict[str, float] = {}


class _Batch(msgspec.Struct):
    rounds: tuple[_Round, ...] = ()


def read_demand(topics: RecordedTopics, cluster: str, days: float) -> list[Demand]:
    """The load in each recorded round of the last days, the oldest first. Raises what
    `RecordedTopics` raises."""
    low, high = topics.whole(keys.ROUNDS)
    start = find_since(topics, low, high, round(days * _DAY_MS))
    records = topics.between(keys.ROUNDS, 0, start, high)
    return [
        Demand(held.at, int(held.summary["brokers"]), held.summary["usage_mean"])
        for _, batch in decode_values(records, msgspec.json.Decoder(_Batch))
        for held in batch.rounds
        if held.cluster == cluster and held.summary.get("usage_mean") is not None
    ]


def find_peak(demands: Sequence[Demand]) -> Demand | None:
    """The round with the largest load; None if none is recorded."""
    return max(demands, key=lambda each: each.whole, default=None)


def needed_brokers(peak: Demand, threshold: float) -> int:
    """How many brokers carry the peak at or below ``threshold`` (a fraction) even if one is lost,
    as if all were equal."""
    return max(1, math.ceil(peak.whole / threshold)) + SPARE
