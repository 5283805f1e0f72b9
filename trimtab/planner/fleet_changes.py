"""Waiting while brokers come and go one after another: a rolling restart, or one that joins after
the other.

under way  = brokers came or went at two moments within an hour, some of them came, and not all that
             are here did
until      = quiet for three times the longest time between two of the moments, at least 10 minutes
             and at most an hour, or a broker is predicted to be overloaded
Meanwhile the range that is accepted is at least 20 points: a broker that came is filled only so
far, which takes few moves. What the next broker gives when it is emptied fills it, for that is
placed where usage is least. The last one is filled when the change is over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trimtab.load_model.history import PlannerHistory
from trimtab.settings import Settings

MEANWHILE: Final = 0.2
"""Lower: bundles are moved that the next broker to be emptied would have given; higher: the
fleet is less even than under AvgShedder, which keeps it within 30 points."""
_GAPS: Final = 3
"""Lower: a broker that is slow to start ends the wait; higher: the last one waits for longer."""
_LEAST_MS: Final = 600_000
"""Lower: a pause between two brokers ends the wait; higher: a broker that came back alone waits for
longer."""
_MOST_MS: Final = 3_600_000
"""Lower: a slow rolling restart is not waited for; higher: a broker that was away for long and came
back alone waits for longer."""
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
    target = max(settings.planner.target, MEANWHILE)
    return replace(settings, planner=replace(settings.planner, target=target))
