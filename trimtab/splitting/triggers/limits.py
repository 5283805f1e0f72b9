"""Checks shared by all triggers: is a bundle over a limit, may its namespace have one more?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from trimtab.arrays import (
    CONSUMERS,
    PRODUCERS,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    TOPICS,
    Bools,
    Counts,
    Floats,
    Ints,
)
from trimtab.reasons import Reason
from trimtab.settings import SplitSettings
from trimtab.view import Bundles


def find_judged(bundles: Bundles) -> Bools:
    """(m,) movable and with at least two topics: a single topic cannot be split."""
    enough: Bools = bundles.movable & (bundles.counts[TOPICS] >= 2)
    return enough


def over_limits(bundles: Bundles, traffic: Floats, limits: SplitSettings) -> dict[int, Reason]:
    """The judged rows that are over a limit, ascending, with the first limit they are over.

    ``traffic`` is (4, m), the rates to judge.
    """
    figures = list_limits(bundles.counts, traffic, limits)
    reasons = tuple(figures)
    over = np.array([figure > limit for figure, limit in figures.values()])
    rows = np.flatnonzero(find_judged(bundles) & over.any(axis=0))
    first = over[:, rows].argmax(axis=0)
    return {row: reasons[at] for row, at in zip(rows.tolist(), first.tolist(), strict=True)}


def list_limits(
    counts: Counts, traffic: Floats, limits: SplitSettings
) -> dict[Reason, tuple[Ints | Floats, float]]:
    """Each figure (m,) that has a limit, and the limit, in the order of the checks.

    ``counts`` (4, m) are as in `trimtab.view.Bundles`, ``traffic`` (4, m) the rates to judge.
    """
    sessions = np.add(counts[CONSUMERS], counts[PRODUCERS], dtype=np.int64)
    figures: dict[Reason, tuple[Ints | Floats, float]] = {
        Reason.TOO_MANY_TOPICS: (counts[TOPICS].astype(np.int64), limits.max_topics),
        Reason.TOO_MANY_SESSIONS: (sessions, limits.max_sessions),
        Reason.TOO_MANY_MESSAGES: (traffic[RATE_IN] + traffic[RATE_OUT], limits.max_rate),
        Reason.TOO_MUCH_TRAFFIC: (
            traffic[THROUGHPUT_IN] + traffic[THROUGHPUT_OUT],
            limits.max_throughput,
        ),
    }
    if limits.max_sessions <= 0:
        del figures[Reason.TOO_MANY_SESSIONS]
    return figures


class Places:
    """How many more bundles each namespace may have; none if its size is unknown."""

    def __init__(self, bundles: Bundles, sizes: Mapping[str, int], most: int) -> None:
        self._bundles, self._sizes, self._most = bundles, sizes, most
        self._planned: Counter[str] = Counter()

    def free(self, row: int) -> bool:
        """Whether the namespace of a bundle may have one more bundle."""
        namespace = self._namespace(row)
        size = self._sizes.get(namespace)
        return size is not None and size + self._planned[namespace] < self._most

    def take(self, row: int) -> None:
        """Count one more bundle in the namespace of a bundle."""
        self._planned[self._namespace(row)] += 1

    def _namespace(self, row: int) -> str:
        return self._bundles.namespaces[int(self._bundles.namespace[row])]
