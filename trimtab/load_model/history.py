"""What the planner remembers from one round to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.load_model.costs import Costs
from trimtab.load_model.estimates import Estimates


@dataclass(frozen=True, slots=True)
class Weighed:
    """A bundle's share of the fleet's traffic, and when (ms) it was looked at."""

    size: float
    at_ms: int


class Foreseen(NamedTuple):
    """Of a broker, by the view that was looked at last: see `trimtab.load_model.fleet.Fleet`."""

    usage: float
    gain: float
    variance: float


@dataclass(frozen=True, slots=True)
class PlannerHistory:
    """Replaced, never changed."""

    estimates: Estimates = field(default_factory=Estimates)
    costs: Costs = field(default_factory=Costs)
    unexplained: dict[str, float] = field(default_factory=dict)
    """Broker to the usage (fraction, fading average) that its bundles' traffic does not explain."""
    strays: dict[str, float] = field(default_factory=dict)
    """Broker to how far a report's unexplained usage is from that average, as a standard deviation.
    """
    unrest: float = 0.0
    """Plans, fading by half in `trimtab.planner.trigger.HALF_LIFE_MS`, as of ``planned_ms``."""
    planned_ms: int = 0
    """When the last of them was made."""
    sent: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Bundle to the broker a plan sent it to, and when (ms), for a while."""
    foreseen: dict[str, Foreseen] = field(default_factory=dict)
    corrections: dict[str, float] = field(default_factory=dict)
    """Broker to how many times its kind's cost its own is, as moves have shown; 1 where none is
    named."""
    giants: dict[str, Weighed] = field(default_factory=dict)
    """Bundles that no plan made room for in the last round, by when that was seen first
    (`trimtab.planner.giants`)."""
    looked_ms: int = 0
    """When giants were last looked for."""
    divided: dict[str, Weighed] = field(default_factory=dict)
    """Giants that were to be divided (`trimtab.splitting.triggers.planned`)."""
