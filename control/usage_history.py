"""The usage of a cluster's brokers in its last rounds, as columns: 40 kB a round of 10,000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimtab.wire.rounds import RoundRecord

KEPT: Final = 120
"""Rounds of a cluster: two hours of rounds a minute. More: memory, 5 MB for 120 of 10,000 brokers.
"""


@dataclass(frozen=True, slots=True, eq=False)
class RoundUsage:
    """What one round saw; ``values`` is (len(names),) usage as fractions."""

    round: int
    at: int
    """Batch timestamp (epoch ms)."""
    changes: int
    """Moves, splits, merges and repairs that it decided."""
    summary: dict[str, float]
    names: tuple[str, ...]
    values: NDArray[np.float32]


def keep_usage(before: tuple[RoundUsage, ...], held: RoundRecord) -> tuple[RoundUsage, ...]:
    """The history, the oldest first, with a round that has usage; the same without."""
    if not held.usage:
        return before
    names = tuple(held.usage)
    if before and before[-1].names == names:
        names = before[-1].names
    new = RoundUsage(
        held.round,
        held.at,
        sum(map(len, (held.moves, held.splits, held.merges, held.repairs))),
        held.summary,
        names,
        np.fromiter(held.usage.values(), np.float32, len(names)),
    )
    return (*before, new)[-KEPT:]


def tabulate(history: Sequence[RoundUsage], brokers: Sequence[str]) -> NDArray[np.float32]:
    """(len(brokers), len(history)) usage as fractions; NaN where a round did not see the broker."""
    found = np.full((len(brokers), len(history)), np.nan, np.float32)
    names: tuple[str, ...] | None = None
    rows = at = np.zeros(0, np.int64)
    for column, each in enumerate(history):
        if each.names is not names:
            names = each.names
            place = {name: row for row, name in enumerate(names)}
            both = [(row, place[name]) for row, name in enumerate(brokers) if name in place]
            rows, at = np.array(both, np.int64).reshape(-1, 2).T
        found[rows, column] = each.values[at]
    return found
