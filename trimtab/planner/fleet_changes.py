"""Waiting while brokers come and go one after another: a rolling restart, or one that joins after
the other.

under way  = brokers came or went at two moments within an hour, some of them came, and not all that
             are here did
until      = quiet for three times the longest time between two of the moments, at least 10 minutes
             and at most 30, or a broker is predicted to be overloaded
meanwhile  : accept a range of 0.6 times the mean usage, at least 15 points and at most 30
             above it plan for the narrowest of 2/3, 1 and 3/2 of it whose moves are within 0.15
             times a broker's bundles for each broker that came
So a broker that came is filled in part. What the next broker gives when it is emptied fills it, for
that is placed where usage is least. The last one is filled when the change is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.load_model.fleet_change import FleetChange
from trimtab.load_model.history import PlannerHistory
from trimtab.planner.search.ground import Ground
from trimtab.planner.search.trial import Trial
from trimtab.settings import Settings

_PART: Final = 0.6
"""Lower: bundles are moved that the next broker to be emptied would have given; higher: the
fleet is less even than under AvgShedder."""
_NARROWEST: Final = 0.15
"""Lower: an idle fleet does not wait; higher: it is less even than under AvgShedder."""
_WIDEST: Final = 0.3
"""AvgShedder keeps a fleet about so even. Lower or higher: as for _PART."""
_WIDTHS: Final = (2 / 3, 1.0)
_LOOSEST: Final = 1.5
"""What is planned for whatever it takes: an empty broker is never left that idle."""
_SHARE: Final = 0.15
"""Lower: less even; higher: more moves beside the drains'."""
_GAPS: Final = 3
"""Lower: a broker that is slow to start ends the wait; higher: the last one waits for longer."""
_LEAST_MS: Final = 600_000
"""Lower: a pause between two brokers ends the wait; higher: a broker that came back alone waits for
longer."""
_MOST_MS: Final = 1_800_000
"""Lower: a slow rolling restart is not waited for; higher: where brokers come and go at random, the
fleet stays less even."""
_OVERLOADED: Final = 0.8
"""Lower: a busy fleet never waits; higher: relief comes late."""


def awaited_until(history: PlannerHistory) -> int:
    """Until when the planner waits, if no broker comes or goes before (ms); 0: it does not wait."""
    change, brokers = history.change, history.foreseen
    if not change.gap_ms or not change.came or brokers.keys() <= {*change.came}:
        return 0
    if any(broker.usage > _OVERLOADED for broker in brokers.values()):
        return 0
    return change.at_ms + min(max(_GAPS * change.gap_ms, _LEAST_MS), _MOST_MS)


def is_waiting(history: PlannerHistory, now_ms: int) -> bool:
    """Whether more brokers are expected to come or go."""
    return now_ms < awaited_until(history)


def settings_now(settings: Settings, history: PlannerHistory, now_ms: int) -> Settings:
    """The settings to plan with: with a wider target while the planner waits."""
    if not is_waiting(history, now_ms):
        return settings
    mean = float(np.mean([broker.usage for broker in history.foreseen.values()]))
    width = min(max(_PART * mean, _NARROWEST), _WIDEST)
    target = max(settings.planner.target, width)
    return replace(settings, planner=replace(settings.planner, target=target))


def plan_meanwhile(
    ground: Ground, change: FleetChange, width: float, plan: Callable[[float], Trial]
) -> Trial:
    """The narrowest plan around this ``width`` that takes few moves; for while the planner waits
    for the end of the ``change``."""
    share = _SHARE * len(ground.rows) / len(ground.brokers)
    for part in _WIDTHS:
        found = plan(part * width)
        if len(found.steps) <= share * len(change.came) - change.moves:
            return found
    return plan(_LOOSEST * width)


def note_moves(history: PlannerHistory, moves: int, now_ms: int) -> PlannerHistory:
    """The history with the ``moves`` of a plan counted if the planner waits."""
    if not is_waiting(history, now_ms):
        return history
    change = replace(history.change, moves=history.change.moves + moves)
    return replace(history, change=change)
