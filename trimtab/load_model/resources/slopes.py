"""What traffic takes of each resource, fitted over all brokers' average reports.

use of a broker = slopes * its traffic + rest
Least squares with no slope below 0, drawn towards one cost of traffic where brokers are alike.
The busiest resource is kept even, whatever the traffic, so its fit is too flat: what it lacks of
the least that traffic explains (`least_explained`) is added in the proportions found.
"""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.resources.costs import least_explained
from trimtab.view import Brokers

MESSAGE_BYTES: Final = 1024.0
"""The cost of handling a message besides its bytes, in bytes. Lower: bundles of small messages look
too light; higher: those of large messages do."""
PRIOR: Final[NDArray[np.float64]] = np.array([MESSAGE_BYTES, MESSAGE_BYTES, 1.0, 1.0])
"""(4,) bytes that each row of traffic counts as while nothing better is known."""
_ALIKE: Final = 0.05
"""Relative deviation of traffic between brokers below which a fit says little about the slopes."""
_SWEEPS: Final = 60
"""Of coordinate descent: more only settle digits that noise makes worthless."""
_CONSTANT: Final = 0.002
"""Relative deviation of a resource below which it does not follow traffic at all. Lower: a memory
that is always in use counts as the bundles'; higher: an even fleet counts as constant."""
_TINY: Final = 1e-30
"""Floor of means and sums that are divided by."""
_TRAFFIC, _USED = slice(1, 5), slice(5, 9)


class Fit(NamedTuple):
    """The fit of four resources."""

    slopes: Floats
    """(4, 4) by resource and row of traffic."""
    rest: Floats
    """(4,) use without traffic."""
    variance: Floats
    """(4,) of what is left."""
    untold: float
    """The part of the prior's standard deviation that is left on whether messages or bytes cost."""


def count_reports(
    past: Floats, brokers: Brokers, news: Bools, elapsed_ms: Ints, half_life: float
) -> Floats:
    """(9, 9) the fading sums of products of 1, traffic and use, after the reports of ``news``."""
    counted = news & (brokers.smoothed_traffic.sum(axis=0) > 0)
    if not counted.any():
        return past
    used = brokers.smoothed_resources[COUNTED] / 100 * brokers.limits[COUNTED]
    rows = np.vstack((np.ones(len(news)), brokers.smoothed_traffic, used))[:, counted]
    kept = 0.5 ** (float(elapsed_ms[counted].min()) / (1000 * half_life))
    moments: Floats = kept * past + rows @ rows.T
    return moments


def fit_slopes(moments: Floats, busiest: int, base: float) -> Fit:
    """Fit the slopes to (9, 9) ``moments`` by coordinate descent (Franc, Hlavac, Navara 2005).

    Brokers use at most ``base`` of the resource ``busiest`` by themselves.
    """
    if moments[0, 0] <= 0:
        return Fit(np.zeros((4, 4)), np.zeros(4), np.zeros(4), 1.0)
    mean = moments[0] / moments[0, 0]
    around = moments / moments[0, 0] - np.outer(mean, mean)
    traffic, used = np.maximum(mean[_TRAFFIC], _TINY), mean[_USED]
    scaled = around[_TRAFFIC, _TRAFFIC] / np.outer(traffic, traffic)
    prior = np.outer(used, PRIOR * traffic / (PRIOR @ traffic))
    left = scaled + _ALIKE**2 * np.eye(4)
    right = (around[_TRAFFIC, _USED] / traffic[:, None]).T + _ALIKE**2 * prior
    slopes = prior.copy()
    for _ in range(_SWEEPS):
        for each in range(4):
            rest = right[:, each] - slopes @ left[:, each] + slopes[:, each] * left[each, each]
            slopes[:, each] = np.maximum(rest / left[each, each], 0.0)
    total = slopes.sum(axis=1)
    slopes *= np.minimum(1.0, used / np.maximum(total, _TINY))[:, None]
    hidden = _hidden(slopes[busiest], used[busiest], around[_USED, _USED][busiest, busiest], base)
    drawn = slopes[busiest] + _ALIKE * prior[busiest]
    slopes[busiest] += hidden * drawn / max(float(drawn.sum()), _TINY)
    explained = (slopes @ scaled * slopes).sum(axis=1)
    both = ((around[_TRAFFIC, _USED] / traffic[:, None]).T * slopes).sum(axis=1)
    variance = np.maximum(np.diag(around)[_USED] - 2 * both + explained, 0.0)
    rest = np.maximum(used - slopes.sum(axis=1), 0.0)
    # What is hidden says nothing of the mixture either.
    untold = max(_untold(scaled, traffic), hidden / max(float(used[busiest]), _TINY))
    return Fit(slopes / traffic, rest, variance, untold)


def _hidden(slopes: Floats, used: float, variance: float, base: float) -> float:
    """What the (4,) ``slopes``, as parts of ``used``, lack of the least that traffic explains."""
    if variance <= (_CONSTANT * used) ** 2:
        return 0.0
    return max(least_explained(used, variance, base) - float(slopes.sum()), 0.0)


def _untold(scaled: Floats, traffic: Floats) -> float:
    """What brokers' reports leave of the prior's standard deviation of whether messages or bytes
    cost, by the relative covariances (4, 4) of their traffic and its means (4,)."""
    rates, bytes_ = (part / max(float(part.sum()), _TINY) for part in (traffic[:2], traffic[2:]))
    mixture = np.concatenate((rates, -bytes_))
    told = float(mixture @ scaled @ mixture)
    return _ALIKE / sqrt(max(told, 0.0) + _ALIKE**2)
