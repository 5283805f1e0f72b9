"""How far the usage that traffic does not explain swings, and how sure its average is.

off      = that usage in a report, less its average before, and less what all brokers are off by
square   = mean of off², moved = mean of half its squared change from one report to the next
memory   = 1 - moved / square, of the median broker; two standard errors are added
doubt    = variance of a broker's average, as if off were a process AR(1) with this memory
           (`trimtab.load_model.estimating.noise_memory`)
Garbage that brokers collect now and then, compactions and timers swing for longer than from one
report to the next, and an average of half an hour swings with them. What most brokers do is taken
for chance; one broker that differs from all others is none, and its average is believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats

_ERRORS: Final = 2.0
"""Standard errors added to the memory. Lower: few reports are believed; higher: a real difference
between brokers is acted on later."""
_MOST: Final = 0.99
"""The longest memory. Lower: slow swings are acted on; higher: the first reports say nothing."""
_FEWEST: Final = 5
"""Brokers of which the median says what is usual. Fewer: what a plan changed on two of them seems
to be chance; more: small fleets follow what swings."""
_TINY: Final = 1e-12
"""A variance of usage that is none."""


class Swing(NamedTuple):
    """What a broker's reports say of it."""

    off: float = 0.0
    """Of the newest report."""
    square: float = 0.0
    moved: float = 0.0
    seen: float = 0.0
    """Reports after the first."""
    squares: float = 1.0
    """Sum of the squared weights of the reports in the average, which begins with the first."""


def follow_swings(
    past: Mapping[str, Swing], names: Sequence[str], off: Floats, fading: Floats
) -> dict[str, Swing]:
    """The swings after a report of each broker that has an ``off``, not NaN; ``fading`` is the part
    of its average that the broker's report leaves."""
    known = ~np.isnan(off)
    common = _usual(off[known]) if known.any() else 0.0
    columns = zip(names, (off - common).tolist(), fading.tolist(), known.tolist(), strict=True)
    return {
        name: _follow(past.get(name, Swing()), now, kept) if news else past.get(name, Swing())
        for name, now, kept, news in columns
    }


def _follow(old: Swing, off: float, kept: float) -> Swing:
    seen = old.seen + 1.0
    new = max(1.0 - kept, 1.0 / seen)
    return Swing(
        off=off,
        square=old.square + new * (off**2 - old.square),
        moved=old.moved + new * ((off - old.off) ** 2 / 2 - old.moved),
        seen=seen,
        squares=kept**2 * old.squares + (1.0 - kept) ** 2,
    )


def find_doubt(swings: Sequence[Swing]) -> Floats:
    """(n,) variance of brokers' average unexplained usage."""
    _, square, moved, seen, squares = np.array(swings).reshape(-1, 5).T
    told = seen > 0
    if np.count_nonzero(told) < _FEWEST:
        return np.zeros(len(swings))
    # The average that a report is compared with has errors too.
    usual, changed = _usual(square[told] / (1.0 + squares[told])), _usual(moved[told])
    if usual <= _TINY:
        return np.zeros(len(swings))
    memory = min(max(1.0 - changed / usual, 0.0) + _ERRORS / float(seen.sum()) ** 0.5, _MOST)
    lasting = memory * (1.0 - squares) / (1.0 + squares)
    left = np.minimum(squares * (1.0 + lasting) / (1.0 - lasting), 1.0)
    doubt: Floats = max(usual, changed / (1.0 - memory)) * left
    return doubt


def _usual(column: Floats) -> float:
    """The median; of an even number, the smaller one in the middle."""
    return float(np.sort(column)[(len(column) - 1) // 2])
