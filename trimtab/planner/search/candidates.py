"""Moves between a few brokers with several resources, and which of them is best for a band.

Where a move leaves its two brokers is the same whatever band is tried, so it is found once and
judged by each band. What the bundle takes off its source counts for less than is believed, what it
brings for as much as may be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.planner.search.ground import Band, BoardMove


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Moves of k bundles, each to any of t brokers; usages are fractions."""

    rows: Ints
    """(k,) rows of the bundles."""
    sources: Ints
    """(k,) their brokers."""
    to: Ints
    """(t,) the other brokers."""
    before: tuple[Floats, Floats]
    """(k,) usage of the sources, and (t,) of the others, without the move."""
    given: tuple[Floats, Floats]
    """(k,) the least usage that the source may have afterwards, and what it surely falls to."""
    taken: tuple[Floats, Floats]
    """(k, t) the usage that the other broker surely rises to, and the most it may have."""

    def best(self, band: Band, worth: float) -> BoardMove | None:
        """The move that brings its two brokers nearest to the band together; None if none gains
        more than ``worth``. The first of several as good."""
        source, there = self.before
        (least, left), (some, most) = self.given, self.taken
        before = _off(source, source, band)[:, None] + _off(there, there, band)
        gain = before - _off(least, left, band)[:, None] - _off(some, most, band)
        gain = np.where(most <= np.maximum(band.high, source)[:, None], gain, -np.inf)
        if not gain.size:
            return None
        at, place = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[at, place] <= worth:
            return None
        return BoardMove(int(self.rows[at]), int(self.sources[at]), int(self.to[place]))


def _off(low: Floats, high: Floats, band: Band) -> Floats:
    """How far brokers of usage ``low`` to ``high`` are outside the band."""
    off: Floats = np.maximum(np.maximum(high - band.high, band.low - low), 0.0)
    return off
