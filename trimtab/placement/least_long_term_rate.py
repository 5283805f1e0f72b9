"""Place on the broker with the least long-term message rate.

Pulsar LeastLongTermMessageRate:

score = infinite                                   if usage > overloaded_threshold
        arriving + settled long-term message rate  otherwise
best  = every candidate with the least score (all of them if all are overloaded)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.filters.request import Projection
from trimtab.load import usage
from trimtab.settings import Settings


class LeastLongTermRate:
    """A Placer without a history."""

    counts: ClassVar[bool] = False
    compared: ClassVar[str] = "which had the fewest messages/s in the long term at that point"

    def __init__(
        self,
        projection: Projection,
        history: None,  # noqa: ARG002 - the contract of a placer
        settings: Settings,
    ) -> None:
        loads = usage(projection.view.brokers.resources, settings.weights)
        overloaded = loads > settings.round.overloaded_threshold
        self._penalty = np.where(overloaded, np.inf, 0.0)
        self._projection = projection

    def best(self, bundle: str, candidates: Ints) -> Ints:  # noqa: ARG002 - any bundle alike
        """The candidates with the least long-term rate."""
        rate = self._projection.arriving + self._projection.settled
        score = (rate + self._penalty).take(candidates)
        return candidates[np.flatnonzero(score == score.min())]

    def loads(self) -> Floats:
        """(n,) long-term messages/s; lookups leave overloaded brokers out as rounds do."""
        return self._projection.arriving + self._projection.settled

    def remembered(self) -> None:
        """Nothing."""
