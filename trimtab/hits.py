"""Consecutive hits of brokers or bundles: how many rounds in a row a condition held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import Bools, Ints


@dataclass(frozen=True, slots=True)
class HitCounts:
    """Counts by name; one that is absent has none."""

    counts: dict[str, int] = field(default_factory=dict)

    def column(self, names: Iterable[str]) -> Ints:
        """(n,) the counts in the order of ``names``."""
        counts = self.counts
        return np.array([counts.get(name, 0) for name in names], dtype=np.int64)

    @classmethod
    def of(cls, names: Iterable[str], column: Ints) -> HitCounts:
        """What `column` reads back; those not named are forgotten."""
        return cls({name: n for name, n in zip(names, column.tolist(), strict=True) if n})


def step(column: Ints, hit: Ints, kept: Bools) -> Ints:
    """One round later: 0 unless ``kept``, then one more for each time a row stands in ``hit``."""
    counts = np.where(kept, column, 0)
    np.add.at(counts, hit, 1)
    return counts
