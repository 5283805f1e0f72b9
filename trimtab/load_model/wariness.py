"""A load that swings is not chased: how wide a range is accepted after recent plans."""

from __future__ import annotations

import math
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
_HALF_LIFE_MS: Final = 12 * 3_600_000
"""Time after which a plan counts half. Shorter: a daily swing is chased; longer: a fleet that was
balanced yesterday stays skewed today."""


def unrest_of(history: PlannerHistory, now_ms: int) -> float:
    """The number of recent plans, faded to now."""
    elapsed_ms = max(now_ms - history.planned_ms, 0)
    return float(history.unrest * 0.5 ** (elapsed_ms / _HALF_LIFE_MS))


def find_tolerated_range(settings: Settings, unrest: float) -> float:
    """The range that is accepted without noise; ``unrest`` counts recent plans."""
    target = settings.planner.target
    return target + min(target, _BALANCED) * min(_WIDENING * max(unrest - 1.0, 0.0), _WIDEST)


def find_slack(settings: Settings, unrest: float) -> float:
    """How far a broker may be from where it counts, so that a range as wide as after many plans is
    always seen."""
    widest = find_tolerated_range(settings, math.inf)
    return (widest - find_tolerated_range(settings, unrest)) / 2
