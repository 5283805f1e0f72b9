"""Finds the bundle that holds a topic on the namespace's hash ring (Pulsar NamespaceBundles)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from zlib import crc32

from trimtab.model import FULL_RANGE_END, HashRange

RING = 1 << 32


def position(topic: str) -> int:
    """A topic's position: CRC-32 of its full name, ``persistent://`` and partition included."""
    return crc32(topic.encode())


def clamped_position(topic: str) -> int:
    """A topic's position, for comparing with the ends of bundles: the ring's end is in the last."""
    return min(position(topic), FULL_RANGE_END - 1)


def equal_edges(bundles: int) -> list[int]:
    """The edges of a namespace that starts with this many bundles; the last one takes the rest.

    Raises ValueError for fewer than one.
    """
    if bundles < 1:
        raise ValueError(f"a namespace has at least one bundle, not {bundles}")
    size = RING // bundles
    return [*(i * size for i in range(bundles)), FULL_RANGE_END]


def row_at(edges: Sequence[int], where: int) -> int:
    """The index, from 0, of the range that holds a position; ``edges`` as in `bundle_at`."""
    return min(bisect_right(edges, where), len(edges) - 1) - 1


def bundle_at(edges: Sequence[int], where: int) -> HashRange:
    """The range that holds a position; ``edges`` ascend from 0 to FULL_RANGE_END.

    The end of the ring belongs to the last range; Pulsar fails there (one topic in 2^32).
    """
    row = row_at(edges, where)
    return HashRange(edges[row], edges[row + 1])
