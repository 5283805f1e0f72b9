"""Place where AvgShedder's last plan said, otherwise anywhere (Pulsar AvgShedder as placement).

Within a round the plan is passed as `ShedWish.destination`; this placer answers for a bundle that
is looked up before its new broker has taken it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.filters.request import Projection
from trimtab.settings import Settings
from trimtab.shedding.avg import AvgHistory


class Avg:
    """A Placer that shares AvgShedder's history."""

    counts: ClassVar[bool] = False
    compared: ClassVar[str] = ""

    def __init__(
        self,
        projection: Projection,
        history: AvgHistory,
        settings: Settings,  # noqa: ARG002 - the contract of a placer
    ) -> None:
        self._row_of = {name: row for row, name in enumerate(projection.view.brokers.names)}
        self._history = history

    def best(self, bundle: str, candidates: Ints) -> Ints:
        """The planned broker if it is a candidate, else all candidates."""
        planned = self._row_of.get(self._history.targets.get(bundle, ""), -1)
        return np.array([planned]) if planned in candidates else np.sort(candidates)

    def loads(self) -> Floats:
        """All 0: the candidates are equal."""
        return np.zeros(len(self._row_of))

    def remembered(self) -> AvgHistory:
        """The history, unchanged."""
        return self._history
