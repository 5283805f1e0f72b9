"""What of the difference between brokers their first reports make sure of.

Nothing tells load from noise before a bundle has been reported twice. Until then the noise of every
bundle is taken for as large as that of loads hardly ever is (`estimating.estimates.UNKNOWN`).

chance  = the variance of a broker's usage by such noise, the mean of all brokers
between = the variance of usage from broker to broker
sure    = 1 - chance / between, the part of ``between`` that is no noise (James and Stein 1961)

Brokers that own bundles but have yet to report may be hotter or colder than those that have: what
the mean may be off by for that counts as chance, too (the correction for finite populations).

Nothing is sure if chance alone makes so much of one even fleet in twenty (chi-square's quantile:
Wilson and Hilferty 1931). Among many brokers one that is far above all others hardly shows in
``between``: if one near overload is further above the mean than chance brings any broker of such a
fleet, it is relieved, and no other broker is touched.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.fleet import Fleet
from trimtab.view import View

_FALSE: Final = 0.05
"""The part of even fleets, with noise as large as is assumed, that is found uneven. As bundles that
noise made large count for more of it, it is one fleet in seventy. Lower: a start with few brokers
waits for more reports; higher: noise is acted on."""
_TINY: Final = 1e-12
"""Floor of a variance, which is divided by."""
_TWO: Final = 2
"""The fewest brokers that differ."""


def judge_first(fleet: Fleet, view: View) -> Fleet:
    """The fleet with what its brokers' first reports make sure of."""
    owners = {record.owner for record in view.records.values() if record.owner is not None}
    usage, silent = fleet.usage, len(owners.difference(view.brokers.names))
    variance = fleet.variance + _off_mean(usage, silent)
    sure = find_sure_part(usage, variance)
    if sure > 0:
        return replace(fleet, sure=sure)
    sure = find_sure_excess(usage, variance, fleet.near_overload)
    return replace(fleet, sure=sure, limit=fleet.near_overload if sure > 0 else fleet.limit)


def find_sure_part(usage: Floats, variance: Floats) -> float:
    """The part of the differences in (n,) ``usage`` that is no noise, which has (n,) ``variance``;
    0 if all of it may be."""
    free = len(usage) - 1
    if len(usage) < _TWO:
        return 0.0
    chance, between = float(variance.mean()), float(usage.var(ddof=1))
    return 1.0 - chance / between if between > _most_by_chance(free) * chance else 0.0


def find_sure_excess(usage: Floats, variance: Floats, near_overload: float) -> float:
    """The part of a broker's excess over the mean that is no noise, of the surest of those above
    ``near_overload``; 0 if all of it may be."""
    if not (usage > near_overload).any():
        return 0.0
    excess = np.where(usage > near_overload, usage - usage.mean(), 0.0)
    furthest = float((excess / np.sqrt(np.maximum(variance, _TINY))).max())
    bound = NormalDist().inv_cdf(1.0 - _FALSE / len(usage))
    return 1.0 - furthest**-2 if furthest > bound else 0.0


def _off_mean(usage: Floats, silent: int) -> float:
    """The variance of the mean of (n,) ``usage`` around that of all brokers, of which so many are
    ``silent``."""
    n = len(usage)
    return float(usage.var(ddof=1)) / n * silent / (n + silent) if n >= _TWO else 0.0


def _most_by_chance(free: int) -> float:
    """The multiple of its variance up to which chance explains one with ``free`` degrees of
    freedom."""
    cubed = 2.0 / (9.0 * free)
    return (1.0 - cubed + NormalDist().inv_cdf(1.0 - _FALSE) * math.sqrt(cubed)) ** 3
