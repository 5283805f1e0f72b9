"""A trial at a plan: its steps, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.load_model.fleet import Fleet
from trimtab.planner.board import BoardMove, Ground, shift


class Trial(NamedTuple):
    """Steps in order, the range they leave, the load they move, and what finding them took."""

    steps: tuple[BoardMove, ...]
    range: float
    load: float
    effort: int


def trial_of(ground: Ground, steps: tuple[BoardMove, ...], effort: int = 0) -> Trial:
    """What the steps come to."""
    fleet, usage = ground.fleet, ground.fleet.usage.copy()
    shift(usage, fleet, steps)
    low, high = ground.reach(usage)
    return Trial(steps, high - low, load_of(fleet, steps), effort)


def load_of(fleet: Fleet, steps: Sequence[BoardMove]) -> float:
    """The load that the steps move, in sizes of bundles."""
    return float(fleet.size[[step.bundle for step in steps]].sum())


def keep_least(
    ground: Ground, keeps: Sequence[int], steps: tuple[BoardMove, ...]
) -> tuple[BoardMove, ...]:
    """The steps without those from brokers that would be left with less than they must keep; what
    comes to them counts."""
    while True:
        come = Counter(step.destination for step in steps)
        come.subtract(step.source for step in steps)
        bare = {
            broker
            for broker, more in come.items()
            if more < 0 and ground.ends[broker + 1] - ground.ends[broker] + more < keeps[broker]
        }
        if not bare:
            return steps
        steps = tuple(step for step in steps if step.source not in bare)
