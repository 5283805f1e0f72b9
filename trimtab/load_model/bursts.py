"""Bundles whose leap may pass: which of them count with their size before, and on which brokers.

A bundle that leapt and may come back (`trimtab.load_model.estimating.doubted_leaps`) counts with
its size before, unless its broker
- nears overload with the bundle as large as it is: then it is to be relieved, or
- stands out from all others, while little is known of this fleet's leaps: one bundle that gets hot
  for good is dealt with at once
A burst that is left out keeps its broker from giving. While little is known of leaps it makes no
room either: what comes in its place would be too much if it lasts. Once leaps are known to pass, a
broker is filled beside its bursts no further than near overload with them: filled beyond, it would
be relieved in the next round, and filled again in the one after. Nor does a broker give for what a
bundle had before it fell.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.caution import count_nearer
from trimtab.settings import Settings

_NEAR_OVERLOAD: Final = 0.95
"""The part of ``round.overloaded_threshold`` above which a broker's bursts are answered at once.
Lower: bursts that pass are answered; higher: a broker is overloaded before anything moves."""
_CLEAR: Final = 3.0
"""Targets by which a broker stands out from all others. Lower: the first bursts of a fleet are
answered; higher: a bundle that gets hot for good waits."""
_SAME: Final = 1e-12
"""Usage by which brokers without leaps may differ in rounding."""


class Hosts(NamedTuple):
    """n brokers, and the bundles that will be there."""

    rest: Floats
    """(n,) usage that bundles do not explain."""
    gain: Floats
    """(n,) usage that a bundle of size 1 adds."""
    where: Ints
    """(m,) the row of each bundle's broker."""

    def usage(self, size: Floats) -> Floats:
        """(n,) usage with bundles of (m,) ``size``."""
        usage: Floats = self.rest + self.gain * np.bincount(self.where, size, len(self.gain))
        return usage


def find_near_overload(settings: Settings) -> float:
    """Usage above which a broker's bursts are answered."""
    return _NEAR_OVERLOAD * settings.round.overloaded_threshold


def leave_out_bursts(
    hosts: Hosts, full: Floats, passing: Bools, settings: Settings, *, known: Bools | bool
) -> tuple[Bools, Bools]:
    """(m,) the bundles that count with their size before, and those that count in full as their
    broker is to be relieved.

    ``full``: (n,) usage with all leaps; ``passing``: (m,) bundles whose leap may pass; ``known``:
    those whose leaps are known to pass.
    """
    clear = _stand_out(full, _CLEAR * settings.planner.target)
    passing = passing & (known | ~clear[hosts.where])
    relieved = passing & (full > find_near_overload(settings))[hosts.where]
    return passing & ~relieved, relieved


def make_no_room(usage: Floats, full: Floats) -> Floats:
    """(..., n) usage without leaps, or ``full`` with them, whichever is nearer to the mean of the
    brokers that have none."""
    if not full.size:
        return usage
    calm = np.abs(usage - full) <= _SAME
    count = calm.sum(axis=-1, keepdims=True)
    mean = np.where(calm, usage, 0.0).sum(axis=-1, keepdims=True) / np.maximum(count, 1)
    mean = np.where(count, mean, full.mean(axis=-1, keepdims=True))
    return count_nearer(usage, full, mean)


def make_limited_room(usage: Floats, full: Floats, near_overload: float) -> Floats:
    """(..., n) ``usage`` without leaps that are known to pass; or more, up to the mean, so that a
    broker that is filled to the mean is not ``near_overload`` with them, at ``full``."""
    if not full.size:
        return usage
    mean = usage.mean(axis=-1, keepdims=True)
    least = np.minimum(full - np.maximum(near_overload - mean, 0.0), mean)
    limited: Floats = np.maximum(usage, least)
    return limited


def find_largest(of: Floats, where: Ints, n: int) -> Floats:
    """(n,) the largest of what (m,) bundles ``of`` brokers have, at least 0."""
    largest = np.zeros(n)
    if of.any():
        np.maximum.at(largest, where, of)
    return largest


def _stand_out(usage: Floats, by: float) -> Bools:
    """(n,) which broker is above all others by more than this."""
    if len(usage) < 2:
        return np.zeros(len(usage), np.bool_)
    second, first = np.sort(usage)[-2:]
    clear: Bools = (usage == first) & (first - second > by)
    return clear
