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
from trimtab.request import Projection
from trimtab.settings import Settings
from trimtab.view import RATE_IN, RATE_OUT, Ints, View


@dataclass(frozen=True, slots=True)
class LeastResourceUsageHistory:
    """Average usage by broker name, one step a call."""

    usage: dict[str, float] = field(default_factory=dict)


class LeastResourceUsage:
    """A Placer that remembers each broker's average usage."""

    def __init__(
        self,
        view: View,
        projection: Projection,  # noqa: ARG002 - the contract of a placer
        history: LeastResourceUsageHistory,
        settings: Settings,
    ) -> None:
        brokers = view.brokers
        self._names = brokers.names
        self._usage = usage(brokers.resources, settings.weights)
        self._average = np.array([history.usage.get(name, np.nan) for name in brokers.names])
        silent = (brokers.traffic[RATE_IN] == 0) & (brokers.traffic[RATE_OUT] == 0)
        self._idle = (brokers.listed == 0) | silent
        self._kept = settings.weights.history
        self._difference = settings.placement.usage_difference

    def best(self, bundle: str, candidates: Ints) -> Ints:  # noqa: ARG002 - any bundle alike
        """The candidates well below the average; their averages advance."""
        now, past = self._usage[candidates], self._average[candidates]
        fresh = self._idle[candidates] | np.isnan(past)
        average = np.where(fresh, now, past * self._kept + (1 - self._kept) * now)
        self._average[candidates] = average
        # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
        mean = np.cumsum(average)[-1] / len(candidates)
        best = candidates[average + self._difference <= mean]
        return np.sort(best if best.size else candidates)

    def remembered(self) -> LeastResourceUsageHistory:
        """The averages of the view's brokers; those of brokers that are gone are dropped."""
        averages = zip(self._names, self._average.tolist(), strict=True)
        return LeastResourceUsageHistory({name: a for name, a in averages if a == a})
