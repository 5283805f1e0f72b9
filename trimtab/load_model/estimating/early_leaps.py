"""Leaps in a fleet's first samples, found once the noise is known.

In the first few samples nothing tells a leap from noise, and the average follows it: a bundle that
bursts in the second minute would seem to be as large as it always was. So the first sample of each
bundle is kept for a while, and compared with its level as soon as noise is known. How long ago it
leapt follows from how much of the average is from before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.events import LEAP
from trimtab.load_model.estimating.noise_memory import true_variance
from trimtab.load_model.estimating.outlying import FAR, counted_samples
from trimtab.load_model.estimating.rows import take_rows

_UNTIL: Final = 10.0
"""Residuals until which first samples are kept: from then on leaps are found as they come. Fewer:
the last of them are missed; more: what grows for minutes seems to have leapt."""


def keep_first(old: Estimates, shares: Floats) -> Floats:
    """(m,) `Estimates.first` with the samples ``shares``: of a fleet known for longer, none."""
    if old.seen.max(initial=0.0) >= _UNTIL:
        return np.zeros(len(shares))
    return np.where(old.unsampled, shares, np.maximum(old.first, 0.0))


def find_early_leaps(known: Estimates) -> Estimates:
    """The estimates with leaps since the first samples, as far as those are still kept."""
    if not (known.first > 0).any():
        return known
    noise = np.sqrt(true_variance(known.variance, known.moved, known.memory))
    kept = (known.first > 0) & (counted_samples(known.seen) > 0)
    tiny = 1e-3 * float(known.level.mean())
    apart = np.abs(np.log((known.level + tiny) / (known.first + tiny)))
    leapt = kept & (apart > np.maximum(FAR * noise, LEAP))
    rows = np.flatnonzero(leapt)
    if not len(rows):
        return known
    age, first = known.age.copy(), known.first.copy()
    age[rows], first[rows] = _find_age(take_rows(known, rows)), -known.first[rows]
    return replace(known, age=age, first=first)


def _find_age(known: Estimates) -> Floats:
    """(m,) samples since a leap from the first to the newest one that makes their average what it
    is."""
    whole = known.last - known.first
    lowest, highest = np.minimum(known.first, known.last), np.maximum(known.first, known.last)
    since = np.clip(known.level, lowest, highest) - known.first
    part = np.divide(since, whole, out=np.ones_like(whole), where=whole != 0)
    age: Floats = np.maximum(np.rint(known.weight * part), 1.0)
    return age
