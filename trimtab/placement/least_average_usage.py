"""Place on a broker well below the average usage (Pulsar extensions LeastResourceUsageWithWeight).

usage = each broker's average over its reports, memory included
mean  = mean of the candidates that have reported
best  = candidates that have reported with usage + usage_difference <= mean, or all if none has
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trimtab.arrays import USAGE, Floats, Ints
from trimtab.filters.request import Projection
from trimtab.settings import Settings


class LeastAverageUsage:
    """A Placer without a history."""

    counts: ClassVar[bool] = False
    compared: ClassVar[str] = "which had the least average usage at that point"

    def __init__(
        self,
        projection: Projection,
        history: None,  # noqa: ARG002 - the contract of a placer
        settings: Settings,
    ) -> None:
        brokers = projection.view.brokers
        self._usage = brokers.averages[USAGE]
        self._reported = brokers.reported_ms > 0
        self._difference = settings.placement.usage_difference

    def best(self, bundle: str, candidates: Ints) -> Ints:  # noqa: ARG002 - any bundle alike
        """The candidates well below the average."""
        known = candidates[self._reported[candidates]]
        if not known.size:
            return candidates
        usage = self._usage[known]
        # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
        mean = np.cumsum(usage)[-1] / len(usage)
        best = known[usage + self._difference <= mean]
        return best if best.size else candidates

    def loads(self) -> Floats:
        """(n,) average usage; of a broker that has not reported, the highest."""
        known = self._reported & ~np.isnan(self._usage)
        loads: Floats = np.where(known, self._usage, self._usage[known].max(initial=0.0))
        return loads

    def remembered(self) -> None:
        """Nothing."""
