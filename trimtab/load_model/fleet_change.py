"""The brokers that came and went of late, as the planner's views show them.

A broker that is drained, lost or held back is in no view of the planner: a restart is seen as one
that goes and comes. Brokers that come or go within an hour of one another belong to one change. Who
came and goes again counts no more: brokers that flap prolong no change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_RELATED_MS: Final = 3_600_000
"""Shorter: a slow rolling restart counts as many changes; longer: brokers that have nothing to do
with one another are waited for."""
_FILLING: Final = 0.25
"""The part of all brokers above which those that have just come make a view that still fills.
Lower: a fleet that grows waits a round; higher: a job that starts plans for the brokers that
happened to report first."""


@dataclass(frozen=True, slots=True)
class FleetChange:
    """Brokers that come and go one after another."""

    at_ms: int = 0
    """When one last came or went; 0: never."""
    gap_ms: int = 0
    """The longest time between two such moments; 0 if there was only one."""
    came: tuple[str, ...] = ()
    """The brokers that came, sorted."""
    moves: int = 0
    """Bundles that plans moved meanwhile, to fill them in part."""


def note_brokers(
    change: FleetChange, before: Collection[str], brokers: Collection[str], now_ms: int
) -> FleetChange:
    """The change after a view with ``brokers``; the view before it had those of ``before``.

    An empty ``before`` means the first view. A view of the same brokers changes nothing.
    """
    came = set(brokers) - set(before)
    gap_ms = now_ms - change.at_ms
    related = bool(change.at_ms) and gap_ms <= _RELATED_MS
    counted = set(change.came) if related else set[str]()
    if not before or not (came | (set(before) - set(brokers))) - counted:
        return change
    longest_ms = max(change.gap_ms, gap_ms) if related else 0
    moves = change.moves if related else 0
    return FleetChange(now_ms, longest_ms, tuple(sorted(counted | came)), moves)


def is_filling(before: Collection[str], brokers: Collection[str]) -> bool:
    """Whether so many of the ``brokers`` came since a view of those ``before``, none: the first,
    that others may be about to come, as after a start."""
    came = len(set(brokers) - set(before))
    return bool(before) and came > max(1.0, _FILLING * len(brokers))
