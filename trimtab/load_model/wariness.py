"""A load that swings is not chased: what plans count as, and how wide a range is accepted after.

unrest = 1 for the first plan of about a day, and for each further one the part of it that is for
         the brokers of earlier ones (`trimtab.load_model.repeated`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.repeated import HALF_LIFE_MS, note_shifts
from trimtab.settings import Settings
from trimtab.settings.words import AIMS

_BALANCED: Final = AIMS["balanced"]
_WIDENING: Final = 0.75
"""The part of the target, of a balanced one at most, by which each recent plan for the same
brokers widens what is accepted. Lower: a swinging load is chased; higher: a real skew after a plan
stays."""
_WIDEST: Final = 2.0
"""The most by which it widens, in the same unit: a balanced target then accepts what AvgShedder
does. Lower: a swinging load is chased; higher: a load that grows for hours is left to AvgShedder's
advantage."""
_CALM: Final = AIMS["calm"]
"""The range beyond which nothing widens: what AvgShedder accepts at all times. Lower: a swinging
load is chased; higher: under wide targets a range that swings is left wider than by AvgShedder, and
plans that come too late for one swing are wrong for the next."""


def unrest_of(history: PlannerHistory, now_ms: int) -> float:
    """The number of recent plans for the same brokers, faded to now."""
    elapsed_ms = max(now_ms - history.planned_ms, 0)
    return float(history.unrest * 0.5 ** (elapsed_ms / HALF_LIFE_MS))


class Made(NamedTuple):
    """A plan that was made."""

    moves: int
    shifted: Mapping[str, float]
    """Broker to the usage that it adds."""


def note_plan(
    history: PlannerHistory, plan: Made, unrest: float, settings: Settings, now_ms: int
) -> PlannerHistory:
    """The history with a plan, after an ``unrest`` of recent ones."""
    shifts, repeated = note_shifts(history.shifts, plan.shifted, now_ms)
    history, weight = replace(history, shifts=shifts), _weigh(history, plan.moves, settings, now_ms)
    if weight == 0:
        return history
    counted = max(weight * repeated, 1.0 - unrest)
    return replace(
        history, unrest=unrest + counted, planned_ms=now_ms, counted=counted, swing=plan.moves
    )


def rests_after_plan(history: PlannerHistory, settings: Settings, now_ms: int) -> bool:
    """Whether the cool-down of the last plan lasts."""
    return now_ms - history.planned_ms < 1000 * settings.round.grace_period


def _weigh(history: PlannerHistory, moves: int, settings: Settings, now_ms: int) -> float:
    """How much a plan of so many moves, for the same brokers, adds to the unrest, from 0 to 1.

    One that begins after the cool-down of the last one counts as 1. Within it, a plan that
    continues an unfinished one counts as 0; any other corrects the last plan, and counts as its
    moves over those of that one: corrections get smaller, and a load that swings does not.
    """
    if not rests_after_plan(history, settings, now_ms):
        return 1.0
    return 0.0 if history.cut else min(moves / max(history.swing, 1), 1.0)


def find_tolerated_range(settings: Settings, unrest: float) -> float:
    """The range that is accepted without noise; ``unrest`` counts recent plans."""
    target = settings.planner.target
    wider = min(_WIDENING * max(unrest - 1.0, 0.0), _WIDEST)
    return max(target, min(target + min(target, _BALANCED) * wider, _CALM))


def find_slack(settings: Settings, unrest: float) -> float:
    """How far a broker may be from where it counts, so that a range as wide as after many plans is
    always seen."""
    widest = find_tolerated_range(settings, math.inf)
    return (widest - find_tolerated_range(settings, unrest)) / 2
