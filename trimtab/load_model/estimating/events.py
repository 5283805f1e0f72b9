"""Bundles that leap together: an event, which says more about each than its few samples.

factor = logarithm of the level after a leap over the one before; its variance is that of a sample's
         logarithm, divided by the number of samples
common = mean of the factors, each weighted by one over its variance
spread = variance of the factors beyond chance (DerSimonian and Laird 1986)
Each factor is drawn towards the common one as far as chance may explain the difference (empirical
Bayes, Morris 1983): if all tenants get six times as busy, that is soon known; if each leaps by its
own factor, nothing changes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats

LEAP: Final = 0.4
"""Change of the logarithm, a factor of 1.5, above which a shift is a leap. Lower: a wave leaps
again and again; higher: events of smaller factors are found one bundle at a time."""
_MOST: Final = 20.0
"""The most samples that a level counts as. Lower: an event teaches little; higher: later samples
hardly change the level."""


class Leaps(NamedTuple):
    """(k,) columns, all above 0."""

    before: Floats
    """Level before the leap."""
    after: Floats
    """Mean of the samples since the leap."""
    samples: Floats
    """Number of the samples since the leap."""
    variance: Floats
    """Variance of one sample's logarithm."""


def draw_leaps(leaps: Leaps) -> tuple[Floats, Floats]:
    """(k,) levels after an event, and how many samples each counts as; needs at least two leaps."""
    factor, chance = np.log(leaps.after / leaps.before), leaps.variance / leaps.samples
    weight = 1.0 / chance
    certainty = float(weight.sum())
    common = float((weight * factor).sum()) / certainty
    beyond = float((weight * (factor - common) ** 2).sum()) - (len(factor) - 1)
    spread = max(beyond / (certainty - float((weight**2).sum()) / certainty), 0.0)
    own = spread / (spread + chance)
    level = leaps.before * np.exp(own * factor + (1 - own) * common)
    left = own * chance + (1 - own) ** 2 / certainty
    return level, np.minimum(leaps.variance / left, np.maximum(leaps.samples, _MOST))
