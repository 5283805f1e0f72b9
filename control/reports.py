"""The newest load reports of brokers, read from Kafka on demand: rounds keep only usage."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from simulation.replay.recorded import RecordedTopics
from trimtab.wire.keys import LOAD_REPORTS
from trimtab.wire.reports.decode import LoadReport, decode
from trimtab.wire.reports.poison import PoisonReport

_RECENT_MS: Final = 300_000
"""How far before the newest round reports are looked for: Pulsar's agents report every 15 minutes
at the latest where nothing changes, trimtab's every minute."""


def newest_values(
    topics: RecordedTopics, cluster: str, brokers: Collection[str], now_ms: int
) -> dict[str, bytes]:
    """Each broker's newest report as it stands in Kafka; brokers without one lately are left out.
    Raises what `RecordedTopics` raises."""
    wanted = {f"{cluster}/{broker}".encode(): broker for broker in brokers}
    found: dict[str, bytes] = {}
    for partition in topics.partitions(LOAD_REPORTS):
        start = topics.offset_at(LOAD_REPORTS, partition, now_ms - _RECENT_MS)
        end = topics.end(LOAD_REPORTS, partition)
        for record in topics.between(LOAD_REPORTS, partition, start, end):
            broker = wanted.get(record.key or b"")
            if broker is not None and record.value:
                found[broker] = record.value
    return found


def readable(values: dict[str, bytes]) -> Iterator[tuple[str, LoadReport]]:
    """Each broker's report, without those that the job rejects."""
    for broker, value in values.items():
        with suppress(PoisonReport):
            yield broker, decode(value)


def busiest_bundles(values: dict[str, bytes]) -> list[tuple[str, float]]:
    """The bundles of these reports with their share of all bytes a second, the busiest first."""
    rates = {
        bundle: float(np.sum(report.stats[2:, row]))
        for _, report in readable(values)
        for row, bundle in enumerate(report.bundles)
    }
    whole = sum(rates.values())
    found = ((bundle, rate / whole if whole else 0.0) for bundle, rate in rates.items())
    return sorted(found, key=lambda each: (-each[1], each[0]))
