"""Judges whether a settled plan did what it was forecast to do, and what follows if it did not.

promised = sum over the touched brokers of the change of usage that was forecast
off      = sum of their surprises, each as far as it exceeds chance
miss     = off > promised / 2, or the range of usage is wider than forecast by more than chance and
           half of what the plan was to gain
hit      = no miss, and chance is small enough to tell
A surprise is usage that a broker's traffic does not explain, so load that changes by itself is no
miss. Each miss halves how far the next plan goes (`trimtab.planner.trigger.reach`), and that one
waits until the plan before it is judged. From the third miss on, planning stops: an hour, and twice
as long after each further miss; then one small plan tries the model again. A hit halves the count.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from trimtab.review.breaker import Ranges
from trimtab.state.ledger_state import Noted

ENOUGH: Final = 3
"""Misses that stop planning. Lower: one odd broker stops it; higher: a wrong model goes on."""
_PART: Final = 0.5
"""The part of the forecast that must come true. Lower: a wrong model passes; higher: costs that
differ from broker to broker, which each plan teaches, count as misses."""
_SURELY: Final = 3.0
"""Standard deviations of a surprise that chance explains."""
_FREEZES: Final = 6
"""``breaker.freeze`` in the first stop: an hour by default. Shorter: a wrong model is tried more
often; longer: a skew stays, though the model has been corrected."""
_DOUBLINGS: Final = 7
"""The most doublings of a stop: some five days by default."""


class Outcome(StrEnum):
    """What a plan's outcome says about the model."""

    HIT = "hit"
    MISS = "miss"
    UNCLEAR = "unclear"


def judge_forecast(plan: Noted, typical: float, ranges: Ranges | None) -> Outcome:
    """The judgement of a settled plan; ``typical`` is the usual deviation of a broker's reports."""
    sides = [side for side in plan.sides.values() if side.reports]
    chances = [_SURELY * side.noise(max(side.strays, typical)) ** 0.5 for side in sides]
    promised = sum(abs(side.predicted - side.before) for side in sides)
    off = sum(
        max(abs(side.surprise) - chance, 0.0) for side, chance in zip(sides, chances, strict=True)
    )
    if off > _PART * promised or (ranges is not None and _is_wider(ranges)):
        return Outcome.MISS
    return Outcome.HIT if promised > 0 and sum(chances) <= _PART * promised else Outcome.UNCLEAR


def count_misses(misses: int, outcome: Outcome) -> int:
    """The number of misses after one more judgement."""
    if outcome is Outcome.MISS:
        return min(misses + 1, ENOUGH + _DOUBLINGS)
    return misses // 2 if outcome is Outcome.HIT else misses


def stop_s(misses: int, freeze: float) -> float:
    """How long (s) planning stops after so many misses; ``freeze`` is ``breaker.freeze``."""
    return float(freeze * _FREEZES * 2 ** (misses - ENOUGH)) if misses >= ENOUGH else 0.0


def _is_wider(ranges: Ranges) -> bool:
    missed = ranges.now - ranges.forecast
    return missed > max(ranges.chance, _PART * (ranges.without - ranges.forecast))
