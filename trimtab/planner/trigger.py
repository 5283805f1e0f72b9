"""Whether brokers are further apart than is accepted, or than chance explains.

accepted(pair) = the target, widened by recent plans; or the limit less the colder one's usage, if
                 a broker is only relieved of bursts that may pass; or, if that is more,
                 aim + k * deviation + what the hot one may owe to a burst that was not seen to
                 begin (`trimtab.load_model.estimating.excursions`): the range that a plan leaves
                 must not cause another plan; but not in an event, when more bundles have just
                 leapt together than chance makes: there a plan that follows another waits for a
                 tenth more than the target; nor on first reports, of which all is judged
                 (`trimtab.load_model.first_reports`)
deviation      = that of the pair's difference in predicted usage, from the noise of its bundles and
                 how long it lasts (`trimtab.load_model.estimating.noise_memory`)
k              = from the false-move rate (`trimtab.load_model.odds`)

A swinging load is not chased: each plan but the first of about a day makes the next one wait for a
wider range, and aim at one, until a broker comes or goes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.load_model.odds import deviations
from trimtab.load_model.wariness import find_tolerated_range
from trimtab.planner.search.ground import Ground
from trimtab.settings import Settings

_AIM: Final = 0.98
"""The part of the target that a plan aims at: a little below, so that its result is accepted."""
_REPEAT_AIM: Final = 0.7
"""The floor for a repeat plan, as a part of the accepted range. Lower: it moves more for noise;
higher: the next one comes sooner. With it a skewed fleet with noise 0.5 takes 1.01 times the moves
of one without (mean of seeds 1 to 40)."""
_RECENT_PLANS: Final = 0.5
"""Recent plans above which a plan is a repeat: one plan counts so much after half a day."""
_LEAST_REACH: Final = 0.125
"""The smallest part of its way that a plan goes. Lower: its outcome drowns in noise, and the model
is never trusted again; higher: a wrong model does more harm."""
_AGAIN: Final = 1.1
"""Multiple of the target above which a plan in an event may follow another. Lower: each sample that
tells a little more of the new loads moves a bundle or two; higher: where noise is strong, and the
first plan was far off, brokers stay so. With it a third of a fleet that doubles for ten minutes
takes 62 moves instead of 77, at the same range (three seeds)."""
_ENDS: Final = 5
"""Brokers compared at either end, as the extremes may be the noisiest. Lower: a surer pair is
missed; higher: more pairs to compare."""


class Pair(NamedTuple):
    """Rows of two brokers, the difference of their usage, and the accepted part of it."""

    hot: int
    cold: int
    range: float
    accepted: float
    deviation: float


def aim(settings: Settings, unrest: float, accepted: float, *, relieving: bool = False) -> float:
    """The range that a plan aims at: below the target, or wider for a repeat plan; if it only
    relieves a broker of bursts that may pass, just below the accepted one."""
    least = _REPEAT_AIM * accepted if unrest > _RECENT_PLANS else 0.0
    if relieving:
        least = _AIM * accepted
    return max(_AIM * settings.planner.target, least)


def reach(misses: int) -> float:
    """The part of its way that a plan goes after so many plans that missed their forecasts."""
    return max(0.5**misses, _LEAST_REACH)


def widest(ground: Ground, settings: Settings, unrest: float) -> Pair:
    """The pair furthest beyond what is accepted; at least two brokers must take part."""
    fleet, brokers, receivers = ground.fleet, ground.brokers, ground.receivers
    hot = brokers[np.lexsort((brokers, fleet.usage[brokers]))][::-1][:_ENDS]
    cold = receivers[np.lexsort((receivers, fleet.usage[receivers]))][:_ENDS]
    range_ = np.subtract.outer(fleet.usage[hot], fleet.usage[cold])
    deviation = np.sqrt(np.add.outer(fleet.variance[hot], fleet.variance[cold]))
    accepted = np.full(range_.shape, find_tolerated_range(settings, unrest))
    if not fleet.on_first_reports:
        planner = settings.planner
        k = deviations(len(brokers), settings.round.interval, planner.false_moves)
        chance = _AIM * planner.target + k * deviation + fleet.hidden[hot][:, None]
        if fleet.struck:
            chance = np.minimum(chance, _AGAIN * accepted if fleet.just_planned else accepted)
        accepted = np.maximum(accepted, chance)
    accepted = np.maximum(accepted, fleet.limit - fleet.usage[cold])
    at, to = np.unravel_index(np.argmax(range_ - accepted), range_.shape)
    return Pair(
        hot=int(hot[at]),
        cold=int(cold[to]),
        range=float(range_[at, to]),
        accepted=float(accepted[at, to]),
        deviation=float(deviation[at, to]),
    )
