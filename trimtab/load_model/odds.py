"""How far apart brokers, or a bundle and its past, must be for chance to explain it rarely.

The false-move rate is shared out over everything that is looked at: every ordered pair of brokers,
or every bundle, in every round of a month. What strikes several bundles together is no chance: from
then on the others are held to what is usual in such an event.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

MONTH_S: Final = 30 * 86_400.0
DRIFT: Final = 1.8
"""Of the CUSUM, in standard deviations: best against steps of twice as much (Page 1954)."""
_OVERSHOOT: Final = 1.166
"""By how much a sum is past its bound when it is looked at (Siegmund 1985, ch. 10)."""
_SHORTER: Final = 10.0
"""Runs are so many times shorter than Siegmund's formula has them (simulated): the level that
samples are held against errs too, all through a run, and two sums are watched."""
_STEPS_A_MOVE: Final = 0.4
"""False steps that may happen for each false plan that may: one step often causes two plans, the
second when it turns out to have been none."""
TOGETHER: Final = 3
"""Bundles that step within a few rounds of each other, never by chance."""
_SURE: Final = 20.0
"""Odds that are asked for in an event."""


def deviations(brokers: int, interval: float, a_month: float) -> float:
    """Standard deviations of a difference that chance reaches ``a_month`` times in rounds each
    ``interval`` seconds; 5.4 for 30 brokers, a minute and once."""
    looks = max(brokers * (brokers - 1), 1) * MONTH_S / max(interval, 1.0)
    # The lower tail: one less a probability as small as these is one.
    return abs(NormalDist().inv_cdf(min(a_month / looks, 0.5)))


def bound(bundles: int, interval: float, a_month: float) -> float:
    """What a sum of ``bundles`` must pass, for as few false steps (Siegmund's run length)."""
    looks = max(bundles, 1) * MONTH_S / max(interval, 1.0)
    run = looks * _SHORTER / (a_month * _STEPS_A_MOVE)
    return max(math.log(run * 2 * DRIFT**2) / (2 * DRIFT) - _OVERSHOOT, 1.0)


def bound_in_event(bundles: int, struck: int) -> float:
    """What a sum must pass once so many of ``bundles`` have stepped: a sum is the logarithm of the
    odds that its bundle has, but for a factor (Page 1954), and as many more may have."""
    return max(math.log(_SURE * bundles / struck) / (2 * DRIFT), 0.5)
