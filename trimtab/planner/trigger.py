"""Whether brokers are further apart than is accepted, or than chance explains.

accepted(pair) = the target, times what recent plans make of it, or if that is more
                 aim + k * deviation: what a plan leaves must not cause another; but not while
                 several bundles have just leapt together, which chance does not explain
deviation      = of the pair's difference in predicted usage, by the noise of its bundles
k              = by the false-move rate (`trimtab.load_model.odds`)

A load that swings is not chased: each plan but the first of about a day makes the next one wait for
a wider range, and aim at one, until a broker comes or goes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.load_model.odds import deviations
from trimtab.planner.board import Ground
from trimtab.settings import Settings

_AIM: Final = 0.98
"""Of the target: what a plan is to reach."""
_WARIER: Final = 0.75
"""By how much of the target each recent plan widens what is accepted."""
_WIDEST: Final = 4.0
"""Targets that are accepted at most, where there is no noise."""
_NOT_ALL: Final = 0.7
"""Of what is accepted: what another plan need not go below, but for the target."""
_LATELY: Final = 0.5
"""Plans: one half a day ago."""
HALF_LIFE_MS: Final = 12 * 3_600_000
"""Of the memory of plans."""
_ENDS: Final = 5
"""Brokers at either end that are compared: the extremes may be the noisiest."""


class Pair(NamedTuple):
    """Rows of two brokers, the difference of their usage, and what of it is accepted."""

    hot: int
    cold: int
    range: float
    accepted: float
    deviation: float


def find_tolerated_range(settings: Settings, unrest: float) -> float:
    """The range that is accepted where there is no noise; ``unrest`` counts recent plans."""
    return settings.planner.target * min(1.0 + _WARIER * max(unrest - 1.0, 0.0), _WIDEST)


def aim(settings: Settings, unrest: float, accepted: float) -> float:
    """The range that a plan is to reach; not the target at any price where there was one lately."""
    least = _NOT_ALL * accepted if unrest > _LATELY else 0.0
    return max(_AIM * settings.planner.target, least)


def widest(ground: Ground, settings: Settings, unrest: float) -> Pair:
    """The pair that is furthest beyond what is accepted; at least two brokers must take part."""
    fleet, brokers, receivers = ground.fleet, ground.brokers, ground.receivers
    hot = brokers[np.lexsort((brokers, fleet.usage[brokers]))][::-1][:_ENDS]
    cold = receivers[np.lexsort((receivers, fleet.usage[receivers]))][:_ENDS]
    range_ = np.subtract.outer(fleet.usage[hot], fleet.usage[cold])
    deviation = np.sqrt(np.add.outer(fleet.variance[hot], fleet.variance[cold]))
    accepted = np.full(range_.shape, find_tolerated_range(settings, unrest))
    if not fleet.struck:
        planner = settings.planner
        k = deviations(len(brokers), settings.round.interval, planner.false_moves)
        accepted = np.maximum(accepted, _AIM * planner.target + k * deviation)
    at, to = np.unravel_index(np.argmax(range_ - accepted), range_.shape)
    return Pair(
        hot=int(hot[at]),
        cold=int(cold[to]),
        range=float(range_[at, to]),
        accepted=float(accepted[at, to]),
        deviation=float(deviation[at, to]),
    )
