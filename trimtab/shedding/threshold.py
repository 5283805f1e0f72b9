"""Shed from every broker well above the average usage (Pulsar ThresholdShedder).

for each broker: average = usage, or past * history + (1 - history) * usage
mean = mean of the averages; done if it is 0
for each broker with average >= mean + threshold:
  need = throughput * (average - mean - threshold + 0.05); skip it if need < min_throughput
  if it lists more than one bundle: take its largest until need is covered, at least one
if nothing was taken and lower_boundary:
  update the averages and the mean once more, as Pulsar does
  if some broker is below mean - threshold:
    from the highest one above that line with more than one bundle, take throughput * threshold / 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import THROUGHPUT_IN, Floats
from trimtab.load import usage
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding.busiest import MARGIN, take_until, traffic
from trimtab.view import Brokers, View


@dataclass(frozen=True, slots=True)
class ThresholdHistory:
    """Average usage by broker name, updated once per round."""

    usage: dict[str, float] = field(default_factory=dict)


def shed(
    view: View, history: ThresholdHistory, settings: Settings
) -> tuple[Sequence[ShedWish], ThresholdHistory]:
    """Shed the largest bundles of every broker above the threshold."""
    names, limits = view.brokers.names, settings.threshold
    averages = average_usage(view.brokers, history, settings)
    mean = mean_of(averages)
    if mean == 0:
        return (), _remember(names, averages)
    need = traffic(view.brokers, THROUGHPUT_IN) * (averages - mean - limits.threshold + MARGIN)
    hot = (averages >= mean + limits.threshold) & (need >= limits.min_throughput)
    sheds = take_until(view, need, hot & (view.brokers.listed > 1), Reason.OVER_AVERAGE)
    if not sheds and limits.lower_boundary:
        averages = average_usage(view.brokers, _remember(names, averages), settings)
        sheds = _lower_boundary(view, averages, settings)
    return sheds, _remember(names, averages)


def average_usage(brokers: Brokers, history: ThresholdHistory, settings: Settings) -> Floats:
    """(n,) average usage: the history's, updated once."""
    loads, kept = usage(brokers.resources, settings.weights), settings.weights.history
    past = np.array([history.usage.get(name, np.nan) for name in brokers.names])
    return np.where(np.isnan(past), loads, past * kept + (1 - kept) * loads)


def mean_of(averages: Floats) -> float:
    """The mean; 0 for no brokers."""
    # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
    return float(np.cumsum(averages)[-1]) / len(averages) if averages.size else 0.0


def _lower_boundary(view: View, averages: Floats, settings: Settings) -> list[ShedWish]:
    threshold = settings.threshold.threshold
    floor = mean_of(averages) - threshold
    able = (view.brokers.listed > 1) & (averages > floor)
    if not able.any() or not (averages < floor).any():
        return []
    # The first of equals, as with Pulsar's strict comparison.
    busiest = int(np.argmax(np.where(able, averages, -np.inf)))
    need = traffic(view.brokers, THROUGHPUT_IN) * threshold * 0.5
    chosen = np.zeros(len(averages), dtype=np.bool_)
    chosen[busiest] = need[busiest] >= settings.threshold.min_throughput
    return take_until(view, need, chosen, Reason.UNDER_AVERAGE_PEER)


def _remember(names: Sequence[str], averages: Floats) -> ThresholdHistory:
    return ThresholdHistory(dict(zip(names, averages.tolist(), strict=True)))
