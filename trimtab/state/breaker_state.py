"""What the breaker remembers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Cause(StrEnum):
    """What got worse after a plan."""

    RANGE = "range"
    """The brokers' usage is spread wider than it would be without the plan."""
    SLOW = "slow-hand-overs"
    FAILED = "failed-transfers"
    FORECAST = "missed-forecasts"
    """Several recent plans did not bring what was forecast: the model is wrong."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """The breaker's memory; replaced, never changed."""

    until_ms: int = 0
    """No strategy is asked before this time (batch timestamp)."""
    found: tuple[str, ...] = ()
    """The reasons as text, for people."""
    trips: dict[str, int] = field(default_factory=dict)
    """How often it has tripped, by cause."""

    def tripped(self, causes: dict[str, str], until_ms: int) -> Breaker:
        """The breaker open until ``until_ms``; ``causes`` maps each cause to what was found."""
        trips = self.trips | {cause: self.trips.get(cause, 0) + 1 for cause in causes}
        return Breaker(max(self.until_ms, until_ms), tuple(causes.values()), trips)

    def closed(self) -> Breaker:
        """The breaker closed: strategies may be asked."""
        return replace(self, until_ms=0, found=())
