"""Thresholds beyond which a difference, of two brokers or of a bundle and its past, is not chance.

The false-move rate is shared over all comparisons: every ordered pair of brokers, or every bundle,
in every round of a month. A level shift of several bundles together is not chance: then a lower
threshold applies to the other bundles.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

MONTH_S: Final = 30 * 86_400.0
"""Seconds of a month, the unit of ``planner.false_moves``."""
DRIFT: Final = 1.8
"""The CUSUM's drift, in standard deviations: best for shifts of twice that size (Page 1954)."""
_OVERSHOOT: Final = 1.166
"""How far a sum is beyond its bound when it is checked (Siegmund 1985, ch. 10)."""
_SHORTER: Final = 10.0
"""Runs are this many times shorter than by Siegmund's formula (simulated): the level that samples
are compared with has errors too, all through a run, and two sums are watched."""
_SHIFTS_PER_PLAN: Final = 0.4
"""False level shifts allowed per allowed false plan: one shift often causes two plans, the second
when it turns out to be false."""
TOGETHER: Final = 3
"""Bundles that shift within a few rounds of each other, never by chance where outliers are rare.
Lower: two false shifts are an event; higher: events of few bundles are missed."""
_FAR: Final = 5.0
"""Deviations of a number of outliers beyond the expected one that make an event. Lower: outliers
that happen to meet are an event; higher: events are missed where outliers are common."""
_CLEARLY: Final = 6.5
"""Logarithm of the odds from which leaps come more often than at other times: one in 700. Lower:
leaps that happen to meet are an event; higher: an event of three after an hour without leaps is
missed."""
_EVENT_ODDS: Final = 20.0
"""The odds required of a shift during an event. Lower: more false shifts; higher: slower to act."""


def deviations(brokers: int, interval: float, a_month: float) -> float:
    """The size in standard deviations that a difference between two of the brokers reaches by
    chance ``a_month`` times a month, with a round every ``interval`` seconds: 5.4 for 30 brokers, a
    round a minute and once a month."""
    looks = max(brokers * (brokers - 1), 1) * MONTH_S / max(interval, 1.0)
    # The lower tail: for probabilities this small, 1 - p rounds to 1.
    return abs(NormalDist().inv_cdf(min(a_month / looks, 0.5)))


def bound(bundles: int, interval: float, a_month: float) -> float:
    """The bound of a sum, for so few false shifts among ``bundles`` (Siegmund's run length)."""
    looks = max(bundles, 1) * MONTH_S / max(interval, 1.0)
    run = looks * _SHORTER / (a_month * _SHIFTS_PER_PLAN)
    return max(math.log(run * 2 * DRIFT**2) / (2 * DRIFT) - _OVERSHOOT, 1.0)


def bound_in_event(bundles: int, struck: int) -> float:
    """The bound of a sum after ``struck`` of ``bundles`` have shifted.

    A sum is, up to a factor, the logarithm of the odds of a shift (Page 1954); the more bundles
    have shifted, the likelier it is that another one has.
    """
    return math.log(_EVENT_ODDS * bundles / struck) / (2 * DRIFT)


def together(expected: float) -> float:
    """How many leaps are an event, if chance brings ``expected`` outliers in as many samples.

    Chance reaches this number 1.2 times in a million at most (Poisson).
    """
    return TOGETHER + expected + _FAR * math.sqrt(expected)


def is_event(count: int, earlier: float, times: float, outliers: float = 0.0) -> bool:
    """Whether ``count`` leaps are more than chance brings together, where at other times, so many
    ``times`` as long, ``earlier`` ones came, and ``outliers`` are to be expected.

    What comes at other times is no better known than by so many: the odds are those of two rates
    against one (likelihood ratio of Poisson counts). After one time without a leap ten are an
    event, after eight of them three are.
    """
    if times <= 0 or count < together(max(outliers, earlier / times)):
        return False
    common = (count + earlier) / (1.0 + times)
    odds = count * math.log(count / common)
    if earlier:
        # Not of their quotient, which may be too small for a number.
        odds += earlier * (math.log(earlier) - math.log(times * common))
    return odds > _CLEARLY
