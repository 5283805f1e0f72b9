"""Load reports of brokers that do not exist, or carry what others carry: for rounds that are tried.

A bundle takes its share of its broker's load with it, in proportion to its bytes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource

_RESOURCES: Final = ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out")


def read_reports(values: Mapping[str, bytes]) -> dict[str, LocalBrokerData]:
    """Each broker's report as it can be changed; those without bundles' figures are left out."""
    found = {}
    for broker, value in values.items():
        report = msgspec.json.decode(value, type=LocalBrokerData)
        if isinstance(report.last_stats, dict):
            found[broker] = report
    return found


def empty_like(like: LocalBrokerData) -> LocalBrokerData:
    """The report of a broker of the same kind that has no bundles."""
    nothing = {name: Resource(0.0, getattr(like, name).limit) for name in _RESOURCES}
    empty = msgspec.structs.replace(like, **nothing, last_stats={}, bundles=[])
    _sum_up(empty)
    return empty


def move_load(source: LocalBrokerData, to: LocalBrokerData, bundle: str) -> None:
    """Change both reports as if the bundle had moved."""
    assert isinstance(source.last_stats, dict)
    assert isinstance(to.last_stats, dict)
    rates = {name: _rate(each) for name, each in source.last_stats.items()}
    whole = sum(rates.values())
    part = rates[bundle] / whole if whole else 1 / len(rates)
    for name in _RESOURCES:
        _shift(source, to, name, part)
    to.last_stats[bundle] = source.last_stats.pop(bundle)
    source.bundles = [each for each in source.bundles if each != bundle]
    to.bundles = [*to.bundles, bundle]
    for report in (source, to):
        _sum_up(report)


def _shift(source: LocalBrokerData, to: LocalBrokerData, name: str, part: float) -> None:
    """Let a part of a resource's usage change brokers; nothing where it is unknown."""
    here, there = getattr(source, name), getattr(to, name)
    if here.usage > 0 and there.usage >= 0:
        amount = here.usage * part
        setattr(source, name, Resource(here.usage - amount, here.limit))
        setattr(to, name, Resource(there.usage + amount, there.limit))


def _rate(stats: BundleStats) -> float:
    return stats.msg_throughput_in + stats.msg_throughput_out


def _sum_up(report: LocalBrokerData) -> None:
    """Make a broker's totals those of its bundles."""
    stats = [*report.last_stats.values()] if isinstance(report.last_stats, dict) else []
    report.msg_rate_in = sum(each.msg_rate_in for each in stats)
    report.msg_rate_out = sum(each.msg_rate_out for each in stats)
    report.msg_throughput_in = sum(each.msg_throughput_in for each in stats)
    report.msg_throughput_out = sum(each.msg_throughput_out for each in stats)
    report.num_topics = sum(each.topics for each in stats)
    report.num_bundles = len(stats)
