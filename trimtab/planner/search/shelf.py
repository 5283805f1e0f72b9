"""The bundles that a broker of the board may give away."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from trimtab.arrays import Floats, Ints


class Shelf:
    """One broker's bundles, ascending in size."""

    def __init__(self, rows: Ints, sizes: Floats) -> None:
        self.rows: list[int] = rows.tolist()
        self.sizes: list[float] = sizes.tolist()
        self.total = sum(self.sizes)

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
