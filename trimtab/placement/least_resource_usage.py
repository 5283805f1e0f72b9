"""Place on a broker well below the average usage (Pulsar LeastResourceUsageWithWeight, modular).

for each candidate, at every call:
  past = its average so far, or none if it has no bundles or no messages
  average = usage if there is no past, else past * history + (1 - history) * usage
mean = mean of the candidates' averages
best = candidates with average + usage_difference <= mean, or all if there is none
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, Bools, Floats, Ints
from trimtab.filters.request import Projection
from trimtab.load import usage
from trimtab.settings import Settings


@dataclass(frozen=True, slots=True)
class LeastResourceUsageHistory:
    """Average usage by broker name, updated once per call."""

    usage: dict[str, float] = field(default_factory=dict)


class LeastResourceUsage:
    """A Placer that remembers each broker's average usage."""

    counts: ClassVar[bool] = False
    compared: ClassVar[str] = "one of those well below the average usage"

    def __init__(
        self, projection: Projection, history: LeastResourceUsageHistory, settings: Settings
    ) -> None:
        brokers = projection.view.brokers
        self._names = brokers.names
        self._usage = usage(brokers.resources, settings.weights)
        self._average = np.array([history.usage.get(name, np.nan) for name in brokers.names])
        silent = (brokers.traffic[RATE_IN] == 0) & (brokers.traffic[RATE_OUT] == 0)
        self._idle = (brokers.listed == 0) | silent
        self._kept = settings.weights.history
        self._fresh = self._idle | np.isnan(self._average)
        self._moving = np.ones(len(self._names), np.bool_)
        self._difference = settings.placement.usage_difference

    def best(self, bundle: str, candidates: Ints) -> Ints:  # noqa: ARG002 - any bundle alike
        """The candidates well below the average; updates their averages."""
        self._advance(candidates)
        below = self._below(self._average.take(candidates))
        return candidates[np.flatnonzero(below)] if below.any() else candidates

    def _advance(self, candidates: Ints) -> None:
        """Update the average of each candidate whose average still changes."""
        if not self._moving.any():
            return
        asked = np.zeros(len(self._moving), np.bool_)
        asked[candidates] = True
        rows = np.flatnonzero(asked & self._moving)
        past, now = self._average[rows], self._usage[rows]
        average = np.where(self._fresh[rows], now, past * self._kept + (1 - self._kept) * now)
        self._average[rows] = average
        self._fresh[rows] = self._idle[rows]
        self._moving[rows] = average != past

    def _below(self, averages: Floats) -> Bools:
        """Which of the candidates are well below their mean."""
        line, count = averages + self._difference, len(averages)
        gap = line - averages.sum() / count
        rounding = 4 * count * np.finfo(np.float64).eps * np.abs(averages).max()
        below: Bools = gap <= 0
        if np.abs(gap).min() <= rounding:
            # Pulsar adds one by one; a pairwise sum may differ in the last bits.
            below = line <= np.cumsum(averages)[-1] / count
        return below

    def loads(self) -> Floats:
        """(n,) average usage; the reported one where there is no average."""
        return np.where(np.isnan(self._average), self._usage, self._average)

    def remembered(self) -> LeastResourceUsageHistory:
        """The averages of the view's brokers; those of other brokers are dropped."""
        averages = zip(self._names, self._average.tolist(), strict=True)
        return LeastResourceUsageHistory({name: a for name, a in averages if a == a})
