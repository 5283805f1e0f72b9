"""Place on each broker in turn (Pulsar RoundRobinBrokerSelector).

turn = calls so far; the order of brokers is kept from call to call
best = the broker at index (turn mod number of candidates) of the kept order
the order is rebuilt from the candidates if their number differs from its length, or if the broker
whose turn it is is not a candidate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.filters.request import Projection
from trimtab.settings import Settings

_TURNS: Final = 2**31
"""Pulsar's counter is a Java int that wraps to 0."""


@dataclass(frozen=True, slots=True)
class RoundRobinHistory:
    """The next turn and the order of the brokers."""

    turn: int = 0
    order: tuple[str, ...] = ()


class RoundRobin:
    """A Placer that remembers its turn."""

    counts: ClassVar[bool] = False
    compared: ClassVar[str] = "whose turn it was"

    def __init__(
        self,
        projection: Projection,
        history: RoundRobinHistory,
        settings: Settings,  # noqa: ARG002 - the contract of a placer
    ) -> None:
        self._names = projection.view.brokers.names
        self._history = history

    def best(self, bundle: str, candidates: Ints) -> Ints:  # noqa: ARG002 - any bundle alike
        """The candidate whose turn it is."""
        rows = {self._names[row]: row for row in candidates.tolist()}
        turn, order = self._history.turn, self._history.order
        at = turn % len(rows)
        if len(order) != len(rows) or order[at] not in rows:
            order = tuple(rows)
        self._history = RoundRobinHistory((turn + 1) % _TURNS, order)
        return np.array([rows[order[at]]])

    def loads(self) -> Floats:
        """All 0: each broker's turn comes equally often."""
        return np.zeros(len(self._names))

    def remembered(self) -> RoundRobinHistory:
        """The turn after every call so far."""
        return self._history
