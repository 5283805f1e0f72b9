"""When a broker reports, and the bandwidth limit it reports.

A report is due (Pulsar ModularLoadManagerImpl.needBrokerDataUpdate) if the last one
  is older than max_interval, or
  differs by more than threshold percent in messages/s, in bytes/s or in the number of bundles, or
  by more than threshold points in weighted usage

The limit of a broker's bandwidth (Pulsar LinuxInfoUtils.getTotalNicLimit) is the sum of its
interfaces' speeds, or the override for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.load import percentages, usage
from trimtab.settings import WeightSettings
from trimtab.settings.setting import setting
from trimtab.wire.reports.load_report import UNKNOWN, LocalBrokerData


@dataclass(frozen=True, slots=True)
class ReportingSettings:
    """How often a broker reports; Pulsar's loadBalancerReportUpdate... keys."""

    min_interval: float = setting(
        5.0,
        "s",
        (0.05, 3600.0),
        "How often it is asked whether a report is due. Short: figures are gathered for nothing; "
        "long: a peak is told late.",
    )
    max_interval: float = setting(
        900.0,
        "s",
        (0.0, 86_400.0),
        "A report so old is repeated though nothing changed. Short: much is told twice; above the "
        "job's round.silence: without heartbeats in between the broker counts as silent.",
    )
    threshold: float = setting(
        10.0,
        "percent",
        (0.0, 10_000.0),
        "A change above it is told at once. Low: noise is told; high: only the interval counts.",
    )


def is_due(
    last: LocalBrokerData,
    current: LocalBrokerData,
    now_ms: int,
    weights: WeightSettings,
    settings: ReportingSettings,
) -> bool:
    """Whether to send ``current``, given that ``last`` was sent last."""
    if now_ms - last.last_update > settings.max_interval * 1000:
        return True
    return _greatest_change(last, current, weights) > settings.threshold


def bandwidth_limit(speeds: Sequence[float], override: float | None = None) -> float:
    """kbit/s in each direction over interfaces of these Mbit/s, or of ``override`` Gbit/s each.

    UNKNOWN if an interface reports no speed (-1 in Linux) and there is no override.
    """
    if override is not None:
        return override * 1e6 * len(speeds)
    if any(speed <= 0 for speed in speeds):
        return UNKNOWN
    return sum(speeds) * 1000.0


def _greatest_change(last: LocalBrokerData, current: LocalBrokerData, w: WeightSettings) -> float:
    before, after = (
        (r.msg_rate_in + r.msg_rate_out, r.msg_throughput_in + r.msg_throughput_out, r.num_bundles)
        for r in (last, current)
    )
    points = 100 * abs(_usage(last, w) - _usage(current, w))
    return max(points, *map(_percent, before, after))


def _percent(before: float, after: float) -> float:
    if before == 0:
        return 0.0 if after == 0 else math.inf
    return 100 * abs((before - after) / before)


def _usage(data: LocalBrokerData, weights: WeightSettings) -> float:
    given = [data.cpu, data.memory, data.direct_memory, data.bandwidth_in, data.bandwidth_out]
    used = np.array([[each.usage] for each in given])
    limit = np.array([[each.limit] for each in given])
    return float(usage(percentages(used, limit), weights)[0])
