"""Running averages: Pulsar's counted samples for bundles, time-based decay for resources."""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints

SHORT_SAMPLES: Final = 10
LONG_SAMPLES: Final = 1000
"""``maxSamples`` of Pulsar's short-term and long-term data."""

DEFAULT_STATS: Final = (50.0, 50.0, 50_000.0, 50_000.0)
"""Pulsar's assumption for an unseen bundle: messages/s in and out, bytes/s in and out."""


def sample(
    values: Floats, n: Ints, new: Floats, mask: Bools, max_samples: int
) -> tuple[Floats, Ints]:
    """Add one sample of (4, m) ``new`` to the columns in ``mask``; returns values and counts.

    The first sample replaces the previous value; from ``max_samples`` on, each has the weight
    1 / max_samples (Pulsar TimeAverageMessageData). ``n`` may count past a smaller maximum, so the
    short and the long averages can share one count.
    """
    counted = np.minimum(n + 1, max_samples)
    average = ((counted - 1) * values + new) / counted
    return np.where(mask, average, values), np.where(mask, counted, n)


def decay(old: Floats, new: Floats, elapsed_s: float | Floats, half_life_s: float) -> Floats:
    """``old`` moved half way to ``new`` every ``half_life_s``; ``new`` where ``old`` is NaN."""
    kept = 0.5 ** (elapsed_s / half_life_s)
    return np.where(np.isnan(old), new, kept * old + (1 - kept) * new)
