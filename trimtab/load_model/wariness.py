"""A load that swings is not chased: what plans count as, and how wide a range is accepted after."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from trimtab.load_model.history import PlannerHistory
from trimtab.settings import Settings
from trimtab.settings.words import AIMS

_BALANCED: Final = AIMS["balanced"]
_WIDENING: Final = 0.75
"""The part of the target, of a balanced one at most, by which each recent plan widens what is
accepted. Lower: a swinging load is chased; higher: a real skew after a plan stays."""
_WIDEST: Final = 2.0
"""The most by which it widens, in the same unit: a balanced target then accepts what AvgShedder
does. Lower: a swinging load is chased; higher: a load that grows for hours is left to AvgShedder's
advantage."""
_CALM: Final = AIMS["calm"]
"""The range beyond which nothing widens: what AvgShedder accepts at all times. Lower: a swinging
load is chased; higher: under wide targets a range that swings is left wider than by AvgShedder, and
plans that come too late for one swing are wrong for the next."""
_HALF_LIFE_MS: Final = 12 * 3_600_000
"""Time after which a plan counts half. Shorter: a daily swing is chased; longer: a fleet that was
balanced yesterday stays skewed today."""


def unrest_of(history: PlannerHistory, now_ms: int) -> float:
    """The number of recent plans, faded to now."""
    elapsed_ms = max(now_ms - history.planned_ms, 0)
    return float(history.unrest * 0.5 ** (elapsed_ms / _HALF_LIFE_MS))


def note_plan(
    history: PlannerHistory, moves: int, unrest: float, settings: Settings, now_ms: int
) -> PlannerHistory:
    """The history with a plan of so many moves, after ``unrest`` recent ones."""
    counted = _count(history, moves, settings, now_ms)
    if counted == 0:
        return history
    return replace(
        history, unrest=unrest + counted, planned_ms=now_ms, counted=counted, swing=moves
    )


def rests_after_plan(history: PlannerHistory, settings: Settings, now_ms: int) -> bool:
    """Whether the cool-down of the last plan lasts."""
    return now_ms - history.planned_ms < 1000 * settings.round.grace_period


def _count(history: PlannerHistory, moves: int, settings: Settings, now_ms: int) -> float:
    """How much a plan of so many moves adds to the unrest, from 0 to 1.

    A plan that begins after the cool-down of the last one counts as 1. Within it, a plan that
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
