"""The order of a plan's moves."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.ground import BoardMove
from trimtab.planner.search.standing import Standing


def order_moves(fleet: Fleet, steps: Sequence[BoardMove]) -> tuple[BoardMove, ...]:
    """Put departures before the arrivals that they make room for: with both copies of a bundle
    counted, no destination exceeds the start's peak. Steps that fit no such order are left out."""
    standing, peak = Standing(fleet), float(fleet.usage.max()) + 1e-9
    waiting, done = list(steps), []
    while waiting:
        ready = [s for s in waiting if standing.arrived(s) <= peak]
        if not ready:
            break
        for step in ready:
            if standing.arrived(step) <= peak:
                standing.apply(step)
                done.append(step)
        placed = set(done)
        waiting = [step for step in waiting if step not in placed]
    return tuple(done)
