"""Place on a broker well below the average usage (Pulsar LeastResourceUsageWithWeight, modular).

for each candidate, at every call:
  past = its average so far, or none if it has no bundles or no messages
  average = usage if there is no past, else past * history + (1 - history) * usage
mean = mean of the candidates' averages
best = candidates with average + usage_difference <= mean, or all if there is none
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trimtab.load import usage
from trimtab.placement.request import Request
from trimtab.settings import Settings
from trimtab.view import RATE_IN, RATE_OUT, Ints


@dataclass(frozen=True, slots=True)
class LeastResourceUsageHistory:
    """Average usage by broker name, one step a call."""

    usage: dict[str, float] = field(default_factory=dict)


def place(
    request: Request,
    candidates: Ints,
    history: LeastResourceUsageHistory,
    settings: Settings,
) -> tuple[Ints, LeastResourceUsageHistory]:
    """The candidates well below the average; their averages advance."""
    brokers, kept = request.view.brokers, settings.weights.history
    names = [brokers.names[row] for row in candidates.tolist()]
    loads = usage(brokers.resources[:, candidates], settings.weights)
    rates = brokers.traffic[:, candidates]
    idle = (brokers.listed[candidates] == 0) | ((rates[RATE_IN] == 0) & (rates[RATE_OUT] == 0))
    past = np.array([history.usage.get(name, np.nan) for name in names])
    average = np.where(idle | np.isnan(past), loads, past * kept + (1 - kept) * loads)
    # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
    mean = np.cumsum(average)[-1] / len(candidates)
    best = candidates[average + settings.placement.usage_difference <= mean]
    live = set(brokers.names)
    kept_usage = {name: value for name, value in history.usage.items() if name in live}
    advanced = kept_usage | dict(zip(names, average.tolist(), strict=True))
    return np.sort(best if best.size else candidates), LeastResourceUsageHistory(advanced)
