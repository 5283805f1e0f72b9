"""What traffic costs on each kind of broker, learned from what brokers report.

A kind is what brokers have in common that report the same limits. Of each kind:

usage = base + cost * traffic     least squares over its brokers' reports, old ones fading,
                                  drawn towards a line through the origin while all carry alike
A kind that carries nothing is taken to cost what others do, by processors.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from trimtab.arrays import CPU, Floats, Ints

COUNT, TRAFFIC, USAGE, SQUARES, PRODUCTS = range(5)
"""Rows of the sums of a kind."""

_ALIKE: Final = 0.05
"""Relative deviation of traffic between brokers below which their line tells little of its slope.
"""
_KINDS: Final = 256
"""More than a fleet has: limits that change with every report would be kinds without end."""
_LEAST: Final = 1e-6
"""Bytes/s of a broker, on average, below which traffic tells nothing of its costs; and percent of
its processors, below which they do not say how strong it is."""
_FEWEST: Final = 0.5
"""A slope is believed from this part of the ratio of usage to traffic on: what a broker uses
without any traffic is taken to be less than the rest."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Sums over reports, fading, by kind; figures of traffic in bytes/s."""

    sums: dict[str, tuple[float, float, float, float, float]] = field(default_factory=dict)
    reported_ms: dict[str, int] = field(default_factory=dict)
    """Broker to the report that was last counted."""


def kinds(limits: Floats) -> tuple[tuple[str, ...], Ints]:
    """Names of the kinds, and (n,) which one each broker is; ``limits`` are (5, n)."""
    found, kind = np.unique(limits, axis=1, return_inverse=True)
    names = tuple(":".join(f"{value:g}" for value in column) for column in found.T.tolist())
    return names, kind.reshape(-1)


def count_reports(past: Costs, kind: str, usage: Floats, traffic: Floats, kept: float) -> Costs:
    """The reports of brokers of a kind added; what was known weighs ``kept`` of what it did."""
    new = np.array(
        [
            len(usage),
            traffic.sum(),
            usage.sum(),
            (traffic * traffic).sum(),
            (traffic * usage).sum(),
        ]
    )
    old = np.array(past.sums.get(kind, (0.0,) * 5))
    count, sum_, used, squares, products = (old * kept + new).tolist()
    return Costs({**past.sums, kind: (count, sum_, used, squares, products)}, past.reported_ms)


def drop_strays(costs: Costs, names: Collection[str]) -> Costs:
    """Without kinds that no broker is of now, where there are very many."""
    if len(costs.sums) <= _KINDS:
        return costs
    return replace(costs, sums={name: s for name, s in costs.sums.items() if name in names})


def per_byte(costs: Costs, names: tuple[str, ...], limits: Floats) -> Floats:
    """(kinds,) usage a byte/s costs; ``limits`` (5, kinds). 0 where nothing is known at all."""
    slopes = np.array([_slope(costs.sums.get(name)) for name in names])
    known = slopes > 0
    if known.all() or not known.any():
        return slopes
    cores = np.where(limits[CPU] > _LEAST, limits[CPU], 1.0)
    usual = float(np.median((slopes * cores)[known]))
    return np.where(known, slopes, usual / cores)


def _slope(sums: tuple[float, ...] | None) -> float:
    if sums is None or sums[TRAFFIC] <= _LEAST * sums[COUNT] or sums[USAGE] <= 0:
        return 0.0
    count, traffic, used, squares, products = sums
    mean, ratio = traffic / count, used / traffic
    variance = squares / count - mean**2
    together = products / count - mean * used / count
    prior = (_ALIKE * mean) ** 2
    slope = (together + prior * ratio) / (max(variance, 0.0) + prior)
    return min(max(slope, _FEWEST * ratio), ratio)
