"""What of the difference between brokers their first reports make sure of.

Nothing tells load from noise before a bundle has been reported twice. Until then the noise of every
bundle is taken for as large as that of loads hardly ever is (`estimating.estimates.UNKNOWN`).

chance  = the variance of a broker's usage by such noise, the mean of all brokers
between = the variance of usage from broker to broker
sure    = 1 - chance / between, the part of ``between`` that is no noise (James and Stein 1961); 0
          if chance alone makes so much of one fleet in a hundred (chi-square's tail: Laurent and
          Massart 2000)
"""

from __future__ import annotations

import math
from typing import Final

from trimtab.arrays import Floats

_ODDS: Final = math.log(100.0)
"""Logarithm of the number of even fleets, with noise as large as is assumed, of which at most one
is found uneven. Lower: noise is acted on; higher: a start with few brokers waits a round."""
_TWO: Final = 2
"""The fewest brokers that differ."""


def find_sure_part(usage: Floats, variance: Floats) -> float:
    """The part of the differences in (n,) ``usage`` that is no noise, which has (n,) ``variance``;
    0 if all of it may be."""
    free = len(usage) - 1
    if len(usage) < _TWO:
        return 0.0
    chance, between = float(variance.mean()), float(usage.var(ddof=1))
    tail = 1.0 + 2.0 * math.sqrt(_ODDS / free) + 2.0 * _ODDS / free
    return 1.0 - chance / between if between > tail * chance else 0.0
