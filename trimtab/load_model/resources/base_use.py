"""What brokers take without traffic: how much of it is theirs, and how much their bundles'.

idle = the least use of an idle broker of late: no broker takes more than that by itself, so the
       rest of what all take without traffic is their bundles'
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load import COUNTED
from trimtab.load_model.resources.costs import is_idle, rise
from trimtab.load_model.resources.known_bundles import sum_by_broker
from trimtab.load_model.resources.needs import TINY, Needs
from trimtab.load_model.resources.slopes import PRIOR, Fit
from trimtab.view import Brokers

_LEAST_IDLE: Final = 0.001
"""Part of its limit that any broker uses by itself: `idle` must be able to rise from none."""
_NOISE_KEPT: Final = 0.9
"""The part of the known noise that a round keeps."""
_NORMAL: Final = 2.198
"""Variance over the median square, of a normal distribution."""


def find_usual(fit: Fit, base_variance: Floats, idle: Floats, held: float) -> tuple[Floats, Floats]:
    """(4,) what a usual bundle takes without traffic, and its variance between bundles.

    ``idle``: (4,) use of an idle broker; ``held``: bundles of a broker on average.
    """
    # What all brokers have without traffic is their bundles' if what differs between them is.
    differing = fit.variance / np.maximum(fit.variance + base_variance, TINY)
    usual: Floats = np.maximum(fit.rest * differing, fit.rest - idle) / held
    # In a balanced fleet sums differ by less than what they are the sums of.
    return usual, np.maximum(fit.variance / held, usual**2)


def find_idle(past: Floats, brokers: Brokers, elapsed_ms: Ints) -> Floats:
    """(4,) the least average use of an idle broker, in parts of its limit; fades by rising."""
    risen = past * rise(float(elapsed_ms.max(initial=0)) / 1000)
    idle_now = is_idle(PRIOR @ brokers.smoothed_traffic)
    shares = brokers.smoothed_resources[COUNTED][:, idle_now].min(axis=1, initial=100.0) / 100
    idle: Floats = np.minimum(risen, np.maximum(shares, _LEAST_IDLE))
    return idle


def free_base(base: Floats, idle: Floats, known: Bools) -> Floats:
    """(4, n) what the brokers' bundles take of (4, n) ``base``: an even fleet seems to take by
    itself what an idle broker shows that it does not, (4, n) ``idle``."""
    if not known.any():
        return np.zeros_like(base)
    more = np.maximum(np.median((base - idle)[:, known], axis=1), 0.0)
    freed: Floats = np.clip(base, 0.0, more[:, None])
    return freed


def base_of(needs: Needs, brokers: Brokers, hosts: Ints) -> Floats:
    """(4, n) what each broker takes by itself; ``hosts``: (m,) its row, by key of its bundles.

    Where its bundles have burst from the first nothing was learned of it, and what a usual broker
    takes may be points off: then it is what average traffic leaves of average use.
    """
    n = len(brokers.names)
    unknown = np.bincount(hosts, needs.host >= 0, n) == 0
    unknown &= np.bincount(hosts, minlength=n) > 0
    if not unknown.any():
        return needs.base
    average = brokers.smoothed_resources[COUNTED] / 100 * brokers.limits[COUNTED]
    traffic = needs.slopes @ brokers.smoothed_traffic
    base: Floats = np.where(
        unknown, average - traffic - sum_by_broker(needs.own, hosts, n), needs.base
    )
    return base


def follow_noise(past: Floats, off: Floats) -> Floats:
    """(4,) the noise after the (4, k) surprises of brokers to which nothing came."""
    if not off.size:
        return past
    seen: Floats = _NORMAL * np.median(off**2, axis=1)
    return _NOISE_KEPT * past + (1 - _NOISE_KEPT) * seen
