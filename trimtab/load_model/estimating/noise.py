"""Learn from each sample how noisy the bundles are, how long the noise lasts, and its outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, find_median
from trimtab.load_model.estimating.estimates import UNKNOWN, Estimates
from trimtab.load_model.estimating.noise_memory import (
    PRIOR,
    STEADY,
    find_memory,
    innovation,
    true_variance,
)
from trimtab.load_model.estimating.outlying import FAR, MOST_AT_ONCE, counted_samples
from trimtab.load_model.odds import DRIFT

_MOST_DEVIATION: Final = 10.0
"""Cap on the log deviation: reached by bundles whose load comes and goes completely."""
_SAMPLES: Final = 1000.0
"""The most samples that the noise is averaged over."""
_CLIPPED: Final = 3.0
"""Standard deviations at which a residual is clipped: one outlier must not set the variance."""
_MAD: Final = 1.4826
"""Standard deviations per median absolute deviation, of a normal distribution."""


@dataclass(frozen=True, eq=False)
class Noise:
    """(m,) columns of `Estimates` that describe the noise, one sample later."""

    variance: Floats
    moved: Floats
    memory: Floats
    seen: Floats

    @cached_property
    def true(self) -> Floats:
        """(m,) variance of a sample's logarithm."""
        return true_variance(self.variance, self.moved, self.memory)

    def deviation(self, old: Estimates) -> Floats:
        """(m,) standard deviation of what a sample has beyond what the last one leads to expect."""
        new: Floats = np.sqrt(self.true * innovation(self.memory, old.weight, old.squares))
        return np.maximum(new, STEADY)


def learn_noise(old: Estimates, residual: Floats, earlier: Floats, news: Bools) -> Noise:
    """The noise after the residuals of a sample and, about the same level, of the one before."""
    # While a level shift is likely, the samples say nothing of the noise.
    news = news & (np.maximum(old.up, old.down) <= FAR - DRIFT)
    if not news.any():
        return _untaught(old)
    # The level has errors too.
    spread = np.sqrt(1.0 + old.squares / np.maximum(old.weight, 1.0) ** 2)
    variance = _pooled(old.variance, old.seen, residual / spread, news)
    moved = _pooled(old.moved, old.seen, (residual - earlier) / math.sqrt(2.0), news)
    seen = np.where(news, np.minimum(old.seen + 1, _SAMPLES), old.seen)
    return Noise(variance, moved, find_memory(variance, moved, seen, old.weight), seen)


def _untaught(old: Estimates) -> Noise:
    """The noise after samples that say nothing of it. If all namespaces leap, bundles of which
    nothing is known yet are judged, too: by the fleet's noise, as far as that is known."""
    known, unknown = old.seen > 0, (old.seen == 0) & ~old.unsampled
    if not unknown.any():
        return Noise(old.variance, old.moved, old.memory, old.seen)

    def fill(square: Floats) -> Floats:
        usual = find_median(square[known]) if known.any() else UNKNOWN
        return np.where(unknown, usual, square)

    return Noise(fill(old.variance), fill(old.moved), old.memory, old.seen)


def _pooled(old: Floats, seen: Floats, deviating: Floats, news: Bools) -> Floats:
    """(m,) mean square of each bundle, drawn towards the fleet's median while samples are few."""
    known = seen > 0
    if known.any():
        usual = find_median(old[known])
    else:
        usual = (_MAD * find_median(np.abs(deviating[news]))) ** 2
    usual = min(max(usual, STEADY**2), _MOST_DEVIATION**2)
    before = np.where(known, old, usual)
    clipped = np.minimum(deviating**2, _CLIPPED**2 * before)
    count = np.minimum(seen + 1, _SAMPLES)
    square = before + (clipped - before) / (count + PRIOR)
    square = np.clip(square, STEADY**2, _MOST_DEVIATION**2)
    return np.where(news, square, before)


def count_outliers(old: Estimates, z: Floats, news: Bools) -> Floats:
    """(m,) the part of the counted samples that are outliers; those of an event count in part."""
    counted = counted_samples(np.minimum(old.seen + 1, _SAMPLES))
    taken = news & (counted > 0)
    # Those of one run are one outlier.
    far = taken & (np.abs(z) > FAR) & (np.maximum(old.up, old.down) <= 0)
    most = MOST_AT_ONCE * float(np.count_nonzero(taken))
    part = min(1.0, most / max(float(np.count_nonzero(far)), 1.0))
    found = old.outliers + (far * part - old.outliers) / np.maximum(counted, 1.0)
    return np.where(taken, found, old.outliers)
