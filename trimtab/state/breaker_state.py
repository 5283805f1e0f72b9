"""What the breaker remembers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Cause(StrEnum):
    """What got worse after a plan."""

    RANGE = "range"
    """Usage of the brokers is further apart than it would be without the plan."""
    SLOW = "slow-hand-overs"
    FAILED = "failed-transfers"


@dataclass(frozen=True, slots=True)
class Breaker:
    """Replaced, never changed."""

    until_ms: int = 0
    """No strategy is asked before (batch timestamp)."""
    found: tuple[str, ...] = ()
    """Why, for people."""
    trips: dict[str, int] = field(default_factory=dict)
    """How often it has tripped, by cause."""

    def tripped(self, causes: dict[str, str], until_ms: int) -> Breaker:
        """Open until then; ``causes`` maps each cause to what was found."""
        trips = self.trips | {cause: self.trips.get(cause, 0) + 1 for cause in causes}
        return Breaker(max(self.until_ms, until_ms), tuple(causes.values()), trips)

    def closed(self) -> Breaker:
        """With nothing to hold strategies back."""
        return replace(self, until_ms=0, found=())
