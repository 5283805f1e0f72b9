"""Consecutive hits of brokers or bundles: how many rounds in a row a condition held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from trimtab.arrays import Bools, Ints


@dataclass(frozen=True, slots=True)
class HitCounts:
    """Counts by name; an absent name counts 0."""

    counts: dict[str, int] = field(default_factory=dict)

    def column(self, names: Iterable[str]) -> Ints:
        """(n,) the counts in the order of ``names``."""
        counts = self.counts
        return np.array([counts.get(name, 0) for name in names], dtype=np.int64)

    @property
    def most(self) -> int:
        """The highest count."""
        return max(self.counts.values(), default=0)

    @classmethod
    def of(cls, names: Iterable[str], column: Ints) -> HitCounts:
        """The inverse of `column`; names that are not given are dropped."""
        return cls({name: n for name, n in zip(names, column.tolist(), strict=True) if n})


def step(column: Ints, hit: Ints, kept: Bools) -> Ints:
    """The counts one round later: 0 unless ``kept``, plus one for each time a row is in ``hit``."""
    counts = np.where(kept, column, 0)
    np.add.at(counts, hit, 1)
    return counts
