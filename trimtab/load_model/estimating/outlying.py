"""How common outliers are: samples that noise with a normal logarithm has once in 16,000.

Where they are common, because the noise has heavy tails or loads burst, one sample says little: a
level shift then takes several, and leaps are an event only beyond the expected number of outliers.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.odds import DRIFT

FAR: Final = 4.0
"""Standard deviations of an outlier: 6e-5 of the samples by chance."""
_KNOWN: Final = 4.0
"""Residuals after which a bundle's own deviation is known well enough to call a sample an
outlier."""
_COMMON: Final = 3e-4
"""Part of the samples above which outliers are common: five times what a normal distribution has.
Lower: chance makes them common; higher: heavier tails make false level shifts."""
_ENOUGH: Final = 6.0
"""Samples of each bundle after which their number is known. Lower: a young fleet acts on outliers;
higher: on an event later."""
_BEFORE: Final = 0.01
"""The part of the samples that are taken to be outliers until then; Student's t with 3 degrees of
freedom has 0.006."""
MOST_AT_ONCE: Final = 0.03
"""Part of a round's samples that count as outliers at most: more are an event. Lower: heavy tails
count as events; higher: after an event outliers seem common."""
_ERRORS: Final = 3.0
"""Standard errors, and outliers, by which their number has to exceed that."""
_SAMPLES: Final = 3.5
"""Samples that a level shift takes where outliers are common, at least; rounded up."""


def counted_samples(seen: Floats) -> Floats:
    """(m,) samples among which outliers are counted, of ``seen`` residuals."""
    counted: Floats = np.maximum(seen - _KNOWN, 0.0)
    return counted


class Outlying(NamedTuple):
    """Outliers of a fleet."""

    bundles: int
    outliers: float
    samples: float

    @property
    def known(self) -> bool:
        """Whether there are enough samples to say how common they are."""
        return self.samples >= _ENOUGH * self.bundles

    def expected(self, samples: float) -> float:
        """The number in so many samples of each bundle; of those that are rare hardly any are far
        enough to look like leaps."""
        if self.rare:
            return 0.0
        rate = self.outliers / self.samples if self.samples else 0.0
        if not self.known:
            rate = max(rate, _BEFORE)
        return rate * self.bundles * samples

    @property
    def common(self) -> bool:
        """Whether there are clearly more than a normal distribution has."""
        surely = self.outliers - _ERRORS * math.sqrt(self.outliers) - _ERRORS
        return surely > _COMMON * self.samples

    @property
    def rare(self) -> bool:
        """Whether there are not clearly more than may be called rare."""
        usual = _COMMON * self.samples
        return self.known and self.outliers <= usual + 2.0 * (math.sqrt(usual) + 1.0)

    def limit(self, bound: float) -> float:
        """The largest residual, in standard deviations, that a sum with this bound counts."""
        return DRIFT + bound / _SAMPLES if self.common or not self.known else math.inf
