"""Whether the bundles that have just leapt are an event, or as many as leap at other times.

count   = bundles that leapt within the last few samples
earlier = bundles that leapt in the hour before, by times as long: the median counts, so that an
          earlier event is none of them
event   = more than outliers explain, and than leap at other times (`trimtab.load_model.odds`)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Bools
from trimtab.load_model.estimating.estimates import JUST, Estimates
from trimtab.load_model.odds import is_event

_EARLIER: Final = 8
"""Times as many samples before them in which leaps are counted: with them an hour of minutes.
Fewer: leaps that come one by one are an event when some of them meet; more: a fleet that has come
to rest misses events."""
_UNFOUND: Final = 6.0
"""A fleet's first samples, in which no leap is found: noise has to be known, and a leap takes a few
samples. Lower: in a young fleet leaps that come one by one seem to be an event; higher: events of a
young fleet are found one bundle at a time."""


def count_event(estimates: Estimates, believed: Bools) -> int:
    """How many of the (m,) ``believed`` bundles have just leapt, if that is an event; else 0."""
    count = int(np.count_nonzero(believed & (estimates.age <= JUST)))
    expected = estimates.outlying.expected(JUST)
    return count if is_event(count, *_count_earlier(estimates), expected) else 0


def _count_earlier(estimates: Estimates) -> tuple[float, float]:
    """How many bundles leapt in the last hour or so before these samples, and how many times as
    long as these that is."""
    samples = float(estimates.seen.max(initial=0.0)) - _UNFOUND - JUST
    times = min(max(samples, 0.0) / JUST, float(_EARLIER))
    windows = max(int(times), 1)
    age = estimates.age
    leapt = age[(age > JUST) & (age <= JUST * (windows + 1))]
    counts = np.bincount(np.ceil(leapt / JUST).astype(np.int64) - 2, minlength=windows)
    return float(np.median(counts)) * windows, min(times, float(windows))
