"""The bundles that a broker of the board may give away."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class Shelf:
    """One broker's bundles, ascending in size."""

    def __init__(self, rows: Sequence[int], sizes: Sequence[float], total: float) -> None:
        self.rows, self.sizes, self.total = [*rows], [*sizes], total

    def fitting(self, least: float, most: float) -> int | None:
        """Place of the smallest bundle from ``least`` to ``most``."""
        at = bisect_left(self.sizes, least)
        return at if at < len(self.sizes) and self.sizes[at] <= most else None

    def largest(self, most: float) -> int | None:
        """Place of the largest bundle not above ``most``."""
        at = bisect_right(self.sizes, most) - 1
        return at if at >= 0 else None

    def take(self, at: int) -> tuple[int, float]:
        """Remove the bundle at a place; returns its row and size."""
        size = self.sizes.pop(at)
        self.total -= size
        return self.rows.pop(at), size
