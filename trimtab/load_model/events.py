"""Bundles that leap together: an event, which says of each what its few samples cannot.

factor = logarithm of the level after a leap over the one before; its variance is that of a sample's
         logarithm over the samples
common = mean of the factors, each weighing one over its variance
spread = variance of the factors beyond chance (DerSimonian and Laird 1986)
Each factor is drawn towards the common one as far as chance may be what sets it apart (empirical
Bayes, Morris 1983): tenants that all get six times as busy are soon known to, and where each leaps
by a factor of its own nothing changes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats

_MOST: Final = 20.0
"""Samples that a level is worth at most: what comes next must still be seen."""


class Leaps(NamedTuple):
    """(k,) columns, all above 0."""

    before: Floats
    """Level."""
    after: Floats
    """Mean of the samples since."""
    samples: Floats
    """How many those are."""
    variance: Floats
    """Of one sample's logarithm."""


def draw_leaps(leaps: Leaps) -> tuple[Floats, Floats]:
    """(k,) levels after an event, and how many samples each is worth; at least two leap."""
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
