"""Average usage and throughput of brokers, updated once per report (Pulsar BrokerLoadData).

usage      = greatest weighted percentage, memory included, as a fraction
throughput = bytes/s in and out
average    = the first figure, then average * history + (1 - history) * figure

A report advances the averages once; Pulsar's also advance with every scrape of its metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from trimtab.load import usage_with_memory
from trimtab.settings import WeightSettings
from trimtab.view import Brokers


@dataclass(frozen=True, slots=True)
class BrokerAverages:
    """By broker name: usage, throughput, and when the last report counted was appended (ms)."""

    usage: dict[str, float] = field(default_factory=dict)
    throughput: dict[str, float] = field(default_factory=dict)
    reported_ms: dict[str, int] = field(default_factory=dict)


def advance(past: BrokerAverages, brokers: Brokers, weights: WeightSettings) -> Floats:
    """(2, n) the averages with each broker's report counted, if it was not counted before."""
    names = brokers.names
    known = np.array([past.reported_ms.get(name, 0) for name in names], dtype=np.int64)
    averages = np.array(
        [[of.get(name, np.nan) for name in names] for of in (past.usage, past.throughput)]
    ).reshape(2, -1)
    throughput = brokers.traffic[THROUGHPUT_IN] + brokers.traffic[THROUGHPUT_OUT]
    figures = np.stack((usage_with_memory(brokers.resources, weights), throughput))
    kept = weights.history
    stepped = np.where(np.isnan(averages), figures, averages * kept + (1 - kept) * figures)
    return np.where(np.isnan(averages) | (brokers.reported_ms > known), stepped, averages)


def remember_averages(brokers: Brokers, averages: Floats) -> BrokerAverages:
    """The averages for the next `advance`; brokers that are gone are forgotten."""
    usage, throughput = averages.tolist()
    return BrokerAverages(
        usage=dict(zip(brokers.names, usage, strict=True)),
        throughput=dict(zip(brokers.names, throughput, strict=True)),
        reported_ms=dict(zip(brokers.names, brokers.reported_ms.tolist(), strict=True)),
    )
