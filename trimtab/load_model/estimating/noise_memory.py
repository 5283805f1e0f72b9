"""How long the noise of a load lasts, and what that takes from the certainty of an average.

A bundle's logarithm is taken for a process AR(1): x' - mean = rho * (x - mean) + innovation.

moved    = half the mean square of the change from a sample to the next: variance * (1 - rho)
variance = of a sample around the average of those before it. With a part a = 1/weight of the newest
           sample in the average, and phi = 1 - a:
moved / variance = 1 - rho * phi                    (von Neumann 1941; exact for an EWMA)
variance of the average = true variance * a / (2 - a) * (1 + rho * phi) / (1 - rho * phi)

Of noise that lasts longer than the samples reach, the average of few samples knows nothing: it
moves with them. Until enough bundles and samples say otherwise, two standard errors are added to
rho, so that a fleet that is not known yet is taken for one whose noise lasts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Floats, find_median

MOST: Final = 0.99
"""The largest rho. Lower: an average of long-lasting noise is believed; higher: a load that drifts
is never believed."""
STEADY: Final = 0.005
"""Log deviation that every bundle is taken to have. Without it every change of a steady bundle is a
level shift."""
PRIOR: Final = 10.0
"""Samples after which a bundle's own variance outweighs the fleet's. Lower: few samples decide;
higher: a noisy bundle counts as a quiet one for long."""
_LARGEST: Final = 100.0
"""Cap on the variance of a logarithm: that of a load which comes and goes completely."""
_OWN: Final = 500.0
"""Samples after which a bundle's own memory outweighs the fleet's. Lower: chance in few samples
decides; higher: bundles that differ from the others are misjudged for long."""
_ERRORS: Final = 2.0
"""Standard errors added to rho. Lower: a young fleet acts on noise; higher: it acts later."""
_LEAST: Final = 0.5
"""Ratios below it are clipped: half of what noise without memory has."""
_SMOOTH: Final = 1.5
"""Ratio, in parts of a random walk's, from which a load moves more smoothly than noise of any
memory: it drifts, and its average lags behind, which is no chance. Lower: lasting noise is acted
on; higher: a tide is waited out."""
_CLIPPED: Final = 3.0
"""Ratios of variance to ``moved`` are clipped at this multiple of what a random walk has: bundles
that drift smoothly must not set the memory of all."""


def find_memory(variance: Floats, moved: Floats, seen: Floats, weight: Floats) -> Floats:
    """(m,) rho of each bundle, drawn towards the fleet's, from 0 to `MOST`.

    ``seen`` are the residuals in ``variance`` and ``moved``, ``weight`` the samples in the level.
    """
    total = float(seen.sum())
    usual = total / max(len(seen), 1)
    # A walk without end: how often its variance exceeds half its mean squared step.
    walk = _walked(usual, find_median(weight)) if total > 0 else 1.0
    reach = 1.0 - 1.0 / walk
    pairs = float(np.maximum(seen - 1.0, 0.0).sum())
    noisy = moved > STEADY**2
    if reach <= 0 or pairs <= 0:
        return np.where(noisy, MOST, 0.0)
    ratio = np.clip(variance / np.maximum(moved, STEADY**2), _LEAST, _CLIPPED * walk)
    # While samples are few, both are drawn towards the same.
    common = 1.0 + (float((ratio * seen).sum()) / total - 1.0) * (usual + PRIOR) / usual
    common = max(common, _LEAST)
    own = common + (ratio - common) * seen / (seen + _OWN)
    wary = _ERRORS / (reach * np.sqrt(pairs))
    memory = np.clip((1.0 - 1.0 / own) / reach + wary, 0.0, MOST)
    return np.where(noisy & (own < _SMOOTH * walk), memory, 0.0)


def _walked(seen: float, weight: float) -> float:
    """The mean, over ``seen`` samples, of a random walk's variance around its average, in parts of
    half its mean squared step: (2 n + 1) / 3 after n samples of equal weight, then up to the weight
    of the average."""
    if seen < 1.5 * weight:
        return (seen + 2.0) / 3.0
    return max(weight * (1.0 - 0.75 * weight / seen), 1.0)


def true_variance(variance: Floats, moved: Floats, memory: Floats) -> Floats:
    """(m,) variance of a sample's logarithm around the mean that a long time would show."""
    lasting = STEADY**2 + np.maximum(moved - STEADY**2, 0.0) / (1.0 - memory)
    true: Floats = np.minimum(np.maximum(variance, lasting), _LARGEST)
    return true


def remaining(memory: Floats, weight: Floats, squares: Floats) -> Floats:
    """(m,) variance of the average in parts of a sample's; ``squares`` sum the squared weights."""
    weight = np.maximum(weight, 1.0)
    lasting = memory * (1.0 - 1.0 / weight)
    left: Floats = np.minimum(squares / weight**2 * (1.0 + lasting) / (1.0 - lasting), 1.0)
    return left


def innovation(memory: Floats, weight: Floats, squares: Floats) -> Floats:
    """(m,) variance of what is new in a sample, as a fraction of a sample's variance.

    New is what remains of its deviation from the average after ``memory`` times that of the sample
    before it.
    """
    errors = squares / np.maximum(weight, 1.0) ** 2
    new: Floats = (1.0 - memory**2) + (1.0 - memory) ** 2 * errors
    return new
