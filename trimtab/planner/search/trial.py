"""A candidate plan: its steps and their result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.ground import BoardMove, Ground
from trimtab.planner.search.standing import stand


class Trial(NamedTuple):
    """Steps in order, the range that they leave, the load that they move, and the effort spent."""

    steps: tuple[BoardMove, ...]
    range: float
    load: float
    effort: int
    cut: bool = False
    """Whether the effort ended before the plan did: a later plan continues it."""
    top: float = 0.0
    """Usage of the hottest broker that they leave."""


def trial_of(
    ground: Ground, steps: tuple[BoardMove, ...], effort: int = 0, cut: bool = False
) -> Trial:
    """The trial that these steps make."""
    low, high = ground.extremes(stand(ground.fleet, steps).usage)
    return Trial(steps, high - low, load_of(ground.fleet, steps), effort, cut, high)


def load_of(fleet: Fleet, steps: Sequence[BoardMove]) -> float:
    """The load that the steps move, as a sum of bundle sizes."""
    return float(fleet.size[[step.bundle for step in steps]].sum())


def keep_least(
    ground: Ground, keeps: Sequence[int], steps: tuple[BoardMove, ...]
) -> tuple[BoardMove, ...]:
    """Drop the steps from brokers that would have fewer bundles than they must keep; arrivals
    count."""
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
