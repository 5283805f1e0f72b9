"""Shed from one broker with far more traffic than the least loaded (Pulsar UniformLoadShedder).

least, most = the brokers' message rates (in + out); a least of 0 counts as 1
if most is more than rate_difference percent above least: measure by rate
else if most is more than throughput_ratio times least in bytes/s: measure by throughput
left = whole part of (most - least) * max_share; nothing if it is below the measure's minimum
if the broker with the most lists more than one bundle:
  its bundles, largest first: take each <= left + 1000, and reduce left by its whole part
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from trimtab.arrays import RATE_IN, THROUGHPUT_IN, Floats, Ints
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings, UnloadSettings
from trimtab.shedding.busiest import largest_first, traffic
from trimtab.view import Brokers, View

_ZERO: Final = 1e-6
"""Traffic up to this counts as 0."""
_ALLOWANCE: Final = 1000
"""Pulsar's: a bundle may exceed ``left`` by so many messages/s or bytes/s."""


@dataclass(frozen=True, slots=True)
class Excess:
    """The excess traffic of the busiest broker, by one measure."""

    source: int
    measure: int
    gap: float
    minimum: float
    reason: Reason


def shed(view: View, history: None, settings: Settings) -> tuple[Sequence[ShedWish], None]:
    """Shed from the broker with the most messages/s; if that gap is accepted, most bytes/s."""
    excess = excess_of(view, settings) if view.brokers.names else None
    if excess is None or view.brokers.listed[excess.source] <= 1:
        return (), history
    left = int(excess.gap * settings.unload.max_share)
    if left < excess.minimum:
        return (), history
    sources, measure = np.array([excess.source]), np.array([excess.measure])
    return [
        ShedWish(row, source, excess.reason)
        for source, rows, sizes in largest_first(view, sources, measure)
        for row in _fill(rows, sizes, left, settings.unload)
    ], history


def excess_of(view: View, settings: Settings) -> Excess | None:
    limits, unload = settings.uniform, settings.unload
    source, least, most = extremes(view.brokers, RATE_IN)
    if 0 < limits.rate_difference < (most - least) * 100 / least:
        return Excess(source, RATE_IN, most - least, unload.min_rate, Reason.RATE_GAP)
    source, least, most = extremes(view.brokers, THROUGHPUT_IN)
    if 0 < limits.throughput_ratio < most / least:
        gap, minimum = most - least, unload.min_throughput
        return Excess(source, THROUGHPUT_IN, gap, minimum, Reason.THROUGHPUT_GAP)
    return None


def extremes(brokers: Brokers, measure: int) -> tuple[int, float, float]:
    """The row of the broker with the most traffic, the least traffic, and the most traffic."""
    carried = traffic(brokers, measure)
    source = int(np.argmax(carried))
    least = float(carried.min())
    return source, 1.0 if least <= _ZERO else least, float(carried[source])


def _fill(rows: Ints, sizes: Floats, left: int, unload: UnloadSettings) -> list[int]:
    chosen: list[int] = []
    for row, size in zip(rows.tolist(), sizes.tolist(), strict=True):
        if 0 <= unload.max_bundles <= len(chosen):
            break
        if size <= left + _ALLOWANCE:
            chosen.append(row)
            left -= int(size)
    return chosen
