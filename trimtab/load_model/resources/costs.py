"""Learn the cost of traffic on each kind of broker from brokers' reports.

A kind is the set of brokers that report the same limits. For each kind:

usage = base + cost * traffic     least squares over its brokers' reports, old ones fading,
                                  drawn towards a line through the origin while all carry alike
base <= the least usage of an idle broker of late, in processors; a fifth of usage if none is known
A fleet that is kept even hides the slope: where usage is the same whatever the traffic, the line is
flat. An idle broker among them shows how little of that usage is the brokers' own.
A kind without traffic gets the usual cost of the others, scaled by processors.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from trimtab.arrays import CPU, Bools, Floats, Ints

COUNT, TRAFFIC, USAGE, SQUARES, PRODUCTS = range(5)
"""Rows of the sums of a kind."""

_ALIKE: Final = 0.05
"""Relative deviation of traffic between brokers below which a fit says little about the slope.
Lower: noise sets the slope; higher: idle usage counts as a cost of traffic."""
_KINDS: Final = 256
"""More kinds than a fleet has: bounds the table if limits change with every report."""
_LEAST: Final = 1e-6
"""Average bytes/s of a broker below which traffic says nothing about its cost, and percent of
processors below which they say nothing about its strength: both only exclude zero."""
_DOUBLED: Final = 86_400.0
"""Seconds in which the least usage known doubles. Shorter: an even fleet forgets what idle brokers
showed; longer: brokers that came to use more by themselves are misjudged for days."""
_EVEN: Final = 0.2
"""Relative deviation of usage between brokers up to which they are kept even. Lower: a range of a
few points shows the slope; higher: what differs for other reasons counts as kept even."""
_IDLE: Final = 0.1
"""The part of the mean traffic up to which a broker is idle. Lower: fewer are seen; higher: what
traffic costs counts as the brokers' own."""
_LEAST_IDLE: Final = 1.0
"""Percent of a processor that any broker uses: doubling must come to an end where one reports none.
"""
_OWN: Final = 0.2
"""The part of usage that is taken to be the brokers' own where they are kept even and no idle one
showed it lately. Lower: plans fall short where brokers are busy by themselves; higher: brokers are
overfilled by bundles that seem to take half of what they do."""
_LEAST_SLOPE: Final = 0.5
"""The smallest believed slope, as a part of the ratio of usage to traffic: a broker's usage without
traffic is assumed to be at most half."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Fading sums over reports, by kind; traffic is in bytes/s."""

    sums: dict[str, tuple[float, float, float, float, float]] = field(default_factory=dict)
    used_squares: dict[str, float] = field(default_factory=dict)
    """Of usage, by kind; they fade as ``sums`` do."""
    reported_ms: dict[str, int] = field(default_factory=dict)
    """Broker to the time of its last counted report."""
    idle: float = inf
    """The least average usage of an idle broker, in percent of a processor; fades by rising."""


def kinds(limits: Floats) -> tuple[tuple[str, ...], Ints]:
    """The names of the kinds, and (n,) the kind of each broker; ``limits`` are (5, n)."""
    if limits.size and (limits == limits[:, :1]).all():
        # Most fleets are of one kind: sorting ten thousand columns takes ten milliseconds.
        found, kind = limits[:, :1], np.zeros(limits.shape[1], np.int64)
    else:
        found, kind = np.unique(limits, axis=1, return_inverse=True)
    names = tuple(":".join(f"{value:g}" for value in column) for column in found.T.tolist())
    return names, kind.reshape(-1)


def count_reports(past: Costs, kind: str, usage: Floats, traffic: Floats, kept: float) -> Costs:
    """Add the reports of brokers of a kind; the old sums are multiplied by ``kept``."""
    new = np.array(
        [
            len(usage),
            traffic.sum(),
            usage.sum(),
            (traffic * traffic).sum(),
            (traffic * usage).sum(),
        ]
    )
    old = np.array(past.sums.get(kind, (0.0,) * 5))
    count, sum_, used, squares, products = (old * kept + new).tolist()
    used_squares = past.used_squares.get(kind, 0.0) * kept + float((usage * usage).sum())
    return replace(
        past,
        sums={**past.sums, kind: (count, sum_, used, squares, products)},
        used_squares={**past.used_squares, kind: used_squares},
    )


def is_idle(traffic: Floats) -> Bools:
    """(n,) whether a broker carries next to nothing, by (n,) traffic."""
    idle: Bools = traffic <= _IDLE * traffic.mean() if traffic.size else np.zeros(0, np.bool_)
    return idle


def note_idle(costs: Costs, usage: Floats, limits: Floats, elapsed: float) -> Costs:
    """The costs after (k,) average usages of idle brokers with these (5, k) limits, ``elapsed``
    seconds after the last ones."""
    least = max(float((usage * _cores(limits)).min(initial=inf)), _LEAST_IDLE)
    return replace(costs, idle=min(costs.idle * float(rise(elapsed)), least))


def rise(elapsed: ArrayLike) -> Floats:
    """(...) the factor by which the least known use of brokers rises in so many seconds."""
    risen: Floats = np.exp2(np.minimum(np.divide(elapsed, _DOUBLED), 64.0))
    return risen


def drop_strays(costs: Costs, names: Collection[str]) -> Costs:
    """Drop kinds without a broker, if there are very many kinds."""
    return costs if len(costs.sums) <= _KINDS else keep_kinds(costs, names)


def keep_kinds(costs: Costs, names: Collection[str]) -> Costs:
    """The costs of these kinds alone."""
    return replace(
        costs,
        sums={name: s for name, s in costs.sums.items() if name in names},
        used_squares={name: s for name, s in costs.used_squares.items() if name in names},
    )


def per_byte(costs: Costs, names: tuple[str, ...], limits: Floats) -> Floats:
    """(kinds,) usage per byte/s; ``limits`` are (5, kinds). 0 if nothing is known at all."""
    cores = _cores(limits)
    bases = (costs.idle / cores).tolist()
    slopes = np.array(
        [
            _slope(costs.sums.get(name), costs.used_squares.get(name, 0.0), base)
            for name, base in zip(names, bases, strict=True)
        ]
    )
    known = slopes > 0
    if known.all() or not known.any():
        return slopes
    usual = float(np.median((slopes * cores)[known]))
    return np.where(known, slopes, usual / cores)


def least_explained(usual: float, variance: float, most_base: float) -> float:
    """What traffic explains of the ``usual`` use of brokers at least, whatever a fit says.

    ``variance`` is that between brokers, ``most_base`` the most that they use by themselves.

    Only a fleet that is kept even hides its slope: the more even, the less is the fit believed.
    """
    even = (_EVEN * usual) ** 2
    evenness = even / (even + max(variance, 0.0)) if even > 0 else 0.0
    # More than loaded brokers use is no bound any more: what was known has faded.
    own = most_base if most_base < usual else _OWN * usual
    return evenness * (usual - own)


def _cores(limits: Floats) -> Floats:
    """(n,) percent of processors of brokers with these (5, n) limits; 1 where unknown."""
    cores: Floats = np.where(limits[CPU] > _LEAST, limits[CPU], 1.0)
    return cores


def _slope(sums: tuple[float, ...] | None, used_squares: float, most_base: float) -> float:
    if sums is None or sums[TRAFFIC] <= _LEAST * sums[COUNT] or sums[USAGE] <= 0:
        return 0.0
    count, traffic, used, squares, products = sums
    mean, ratio = traffic / count, used / traffic
    variance = squares / count - mean**2
    together = products / count - mean * used / count
    prior = (_ALIKE * mean) ** 2
    slope = (together + prior * ratio) / (max(variance, 0.0) + prior)
    usual = used / count
    hidden = least_explained(usual, used_squares / count - usual**2, most_base) / mean
    return min(max(slope, _LEAST_SLOPE * ratio, hidden), ratio)
