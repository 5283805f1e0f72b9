"""What brokers report to carry beyond what is known of their bundles.

A report's sums are those of its bundles. But a broker may leave the same bundles out of each of its
reports, and count them in its sums: then its bundles explain less of its usage than its sums say.
Where reports lack bundles now and then, and their sums too, its bundles explain more, as they are
known (`trimtab.load_model.unreported`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.history import SETTLED_MS, PlannerHistory
from trimtab.view import Brokers

_CLEAR: Final = 0.1
"""The part of average traffic that is clearly beyond that of bundles. Lower: figures that are taken
a minute apart differ by it; higher: a broker whose report lacks bundles seems colder."""
_TINY: Final = 1e-9
"""Floor of shares that are divided by."""


def find_held(
    estimates: Estimates, at: Ints, traffic: Floats, owner: Ints, absent: Floats
) -> Floats:
    """(n,) bytes/s of the bundles of brokers: those that report ``traffic``, (m,) as the rows
    ``at`` and ``owner``, and (n,) the share ``absent`` of those that are not reported."""
    level, silent = estimates.current[at], estimates.silent(at, traffic)
    whole = float(traffic.sum()) / max(float(level[~silent].sum()), _TINY)
    carried = np.where(silent, level * whole, traffic)
    held = np.bincount(owner, carried, len(absent)).astype(np.float64)
    return held + whole * absent


def follow_beyond(
    brokers: Brokers, history: PlannerHistory, now: Floats, elapsed: Floats, fading: Floats
) -> Floats:
    """(n,) what is beyond the bundles on average, after reports in which it is ``now``; (n,)
    seconds ``elapsed`` since the ones before, 0 without a new one, and what averages keep."""
    names, at_ms = brokers.names, brokers.reported_ms
    before = np.array([history.beyond.get(name, 0.0) for name in names])
    age = (at_ms - np.array([history.since_ms[name] for name in names], np.int64)) / 1000.0
    # What is missing of sums is missing of their averages, which follow as slowly. What they have
    # beyond bundles is known as soon as all bundles are: its average is that of all reports alike.
    alike = np.minimum(fading, 1.0 - elapsed / np.maximum(age, np.maximum(elapsed, 1.0)))
    kept = np.where((now < 0) & (before <= 0), fading, alike)
    # For a while after bundles came or went, what is known of them is newer than the report.
    counts = (elapsed > 0) & (at_ms - history.hosted.changed_ms >= SETTLED_MS)
    return np.where(counts, now + kept * (before - now), before)


def find_clear(beyond: Floats, usual: Floats) -> Bools:
    """(n,) whether that is clear, beside (n,) the ``usual`` traffic."""
    mean = float(usual.sum()) / max(len(usual), 1)
    clear: Bools = np.abs(beyond) > _CLEAR * np.maximum(usual, mean)
    return clear
