"""Pair the busiest broker with the idlest, and so on inwards (Pulsar AvgShedder, also a placement).

score = usage in points; pair brokers from both ends of the order by score
for each pair with gap = difference of scores:
  gap < low_threshold:             both lose their hits
  gap < high_threshold:            both gain a low hit and lose their high hits
  otherwise:                       both gain a low and a high hit
for each pair with enough hits of either kind on either side, busiest first:
  both lose their hits
  need = (message rate of the busy - of the idle) * max_share
  if need <= min_rate: the same in bytes/s if above min_throughput, otherwise nothing
  take bundles of the busy broker, largest first, each that still fits into the rest of need
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import RATE_IN, THROUGHPUT_IN, Bools, Floats, Ints
from trimtab.hits import HitCounts, step
from trimtab.load import usage
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import AvgSettings, Settings, UnloadSettings
from trimtab.shedding.busiest import largest_first, traffic
from trimtab.view import Brokers, View


@dataclass(frozen=True, slots=True)
class AvgHistory:
    """Hits of each broker, and the destination of each bundle in the last plan.

    Pulsar keys its targets by the bundle's figures, so equal bundles collide and a plan is lost as
    soon as the load changes. Keys by name, kept for one round, avoid both.
    """

    low: HitCounts = field(default_factory=HitCounts)
    high: HitCounts = field(default_factory=HitCounts)
    targets: dict[str, str] = field(default_factory=dict)


def count_hits(history: AvgHistory, settings: Settings) -> Mapping[str, tuple[int, int]]:
    """By counter: the highest number of hits of any broker, and the number at which its pair
    sheds."""
    return {
        "low": (history.low.most, settings.avg.low_hits),
        "high": (history.high.most, settings.avg.high_hits),
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The pairs to act on, busiest first: broker rows, and whether they had enough high hits."""

    idle: Ints
    busy: Ints
    high: Bools


def shed(
    view: View, history: AvgHistory, settings: Settings
) -> tuple[Sequence[ShedWish], AvgHistory]:
    """Bundles of the busy half, each with its destination in the idle half."""
    names = view.brokers.names
    scores = usage(view.brokers.resources, settings.weights) * 100
    low, high = history.low.column(names), history.high.column(names)
    low, high, pairs = _count(scores, low, high, settings.avg)
    sheds = _select(view, pairs, settings.unload)
    targets = {
        view.bundles.names[s.bundle]: names[s.destination]
        for s in sheds
        if s.destination is not None
    }
    return sheds, AvgHistory(HitCounts.of(names, low), HitCounts.of(names, high), targets)


def _count(scores: Floats, low: Ints, high: Ints, limits: AvgSettings) -> tuple[Ints, Ints, _Pairs]:
    """The hits after this round, and the pairs with enough hits."""
    order = np.argsort(scores, kind="stable")
    half = (len(order) + 1) // 2
    # With an odd number of brokers the middle one is its own peer and counts twice.
    idle, busy = order[:half], order[::-1][:half]
    gap = scores[busy] - scores[idle]
    apart, wide = gap >= limits.low_threshold, gap >= limits.high_threshold
    low = step(low, np.concatenate((idle[apart], busy[apart])), _marked(low, idle, busy, apart))
    both = apart & wide
    high = step(high, np.concatenate((idle[both], busy[both])), _marked(high, idle, busy, both))
    enough_low = np.maximum(low[idle], low[busy]) >= limits.low_hits
    enough_high = np.maximum(high[idle], high[busy]) >= limits.high_hits
    acting = apart & (enough_low | enough_high)
    done = np.concatenate((idle[acting], busy[acting]))
    low[done] = 0
    high[done] = 0
    return low, high, _Pairs(idle[acting], busy[acting], enough_high[acting])


def _marked(column: Ints, idle: Ints, busy: Ints, chosen: Bools) -> Bools:
    marked = np.zeros(len(column), dtype=np.bool_)
    marked[idle[chosen]] = True
    marked[busy[chosen]] = True
    return marked


def _select(view: View, pairs: _Pairs, limits: UnloadSettings) -> list[ShedWish]:
    rate, throughput = _gap(view.brokers, pairs, RATE_IN), _gap(view.brokers, pairs, THROUGHPUT_IN)
    by_rate = rate * limits.max_share > limits.min_rate
    worth = by_rate | (throughput * limits.max_share > limits.min_throughput)
    need = np.where(by_rate, rate, throughput)[worth] * limits.max_share
    measure = np.where(by_rate, RATE_IN, THROUGHPUT_IN)[worth]
    sources = pairs.busy[worth]
    pair_of = {
        source: (left, idle, Reason.HIGH_PAIR if high else Reason.LOW_PAIR)
        for source, left, idle, high in zip(
            sources.tolist(),
            need.tolist(),
            pairs.idle[worth].tolist(),
            pairs.high[worth].tolist(),
            strict=True,
        )
    }
    sheds = []
    for source, rows, sizes in largest_first(view, sources, measure):
        left, idle, reason = pair_of[source]
        for row in _fill(rows, sizes, left):
            sheds.append(ShedWish(row, source, reason, idle))
    return sheds


def _gap(brokers: Brokers, pairs: _Pairs, measure: int) -> Floats:
    carried = traffic(brokers, measure)
    return carried[pairs.busy] - carried[pairs.idle]


def _fill(rows: Ints, sizes: Floats, left: float) -> list[int]:
    """The rows that fit into ``left`` one after another; ``sizes`` descend."""
    chosen: list[int] = []
    ascending = (-sizes).tolist()
    at = bisect_left(ascending, -left)
    while at < len(ascending) and ascending[at] < 0:
        chosen.append(at)
        left += ascending[at]
        at = bisect_left(ascending, -left, at + 1)
    fitting: list[int] = rows[chosen].tolist()
    return fitting
