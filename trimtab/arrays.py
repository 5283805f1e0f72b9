"""Array types, and the row numbers of the matrices that reports, snapshots and views share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Counts = NDArray[np.int32]

RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT = range(4)
"""Rows of every ``traffic`` matrix: messages/s in and out, bytes/s in and out."""

CPU, MEMORY, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT = range(5)
"""Rows of every ``resources`` matrix."""

TOPICS, CONSUMERS, PRODUCERS, CACHE = range(4)
"""Rows of ``Bundles.counts``: three counts, and the cache in units of CACHE_STEP bytes."""

CACHE_STEP = 100_000

USAGE, THROUGHPUT = range(2)
"""Rows of ``Brokers.averages``."""


def same_columns(some: Any, other: object) -> bool:
    """Whether both are the same dataclass with equal fields, of which some are columns."""
    names = [each.name for each in fields(some)]
    return type(other) is type(some) and all(
        np.array_equal(getattr(some, name), getattr(other, name)) for name in names
    )


def find_median(values: Floats) -> float:
    """The median of (m,) values, at least one of them, and none NaN: as `numpy.median`, which takes
    two to eight times as long, as it looks for two places at once."""
    middle = len(values) // 2
    parted = np.partition(values, middle)
    upper = float(parted[middle])
    return upper if len(values) % 2 else (float(parted[:middle].max()) + upper) / 2
