"""Which of two usages counts, where what a broker has more or less may pass."""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Floats


def count_nearer(usage: Floats, other: Floats, mean: Floats) -> Floats:
    """(..., n) ``usage`` or ``other``, whichever is nearer to the (..., 1) ``mean``, or the mean
    where it is between them: so a broker neither gives nor receives for the difference."""
    counted: Floats = np.clip(mean, np.minimum(usage, other), np.maximum(usage, other))
    return counted
