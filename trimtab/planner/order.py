"""The order of a plan's moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.load_model.fleet import Fleet
from trimtab.planner.board import BoardMove


def order_moves(fleet: Fleet, steps: Sequence[BoardMove]) -> tuple[BoardMove, ...]:
    """Put departures before the arrivals that they make room for: with both copies of a bundle
    counted, no destination exceeds the start's peak. Steps that fit no such order are left out."""
    usage, peak = fleet.usage.copy(), float(fleet.usage.max()) + 1e-9
    waiting, done = list(steps), []
    while waiting:
        ready = [s for s in waiting if _arrived(fleet, usage, s) <= peak]
        if not ready:
            break
        for step in ready:
            arrived = _arrived(fleet, usage, step)
            if arrived <= peak:
                usage[step.destination] = arrived
                usage[step.source] -= fleet.size[step.bundle] * fleet.gain[step.source]
                done.append(step)
        placed = set(done)
        waiting = [step for step in waiting if step not in placed]
    return tuple(done)


def _arrived(fleet: Fleet, usage: np.ndarray, step: BoardMove) -> float:
    return float(usage[step.destination] + fleet.size[step.bundle] * fleet.gain[step.destination])
