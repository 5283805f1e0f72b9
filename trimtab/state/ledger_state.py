"""The ledger of moves whose results are not known yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from trimtab.plan import Forecast, LandedMove

MOST_OPEN: Final = 4096
"""Limit on the moves waited for; older plans are given up for newer ones."""
_RECENT: Final = 100.0
"""Number of sides that the mean errors cover."""


class MoveOutcome(StrEnum):
    """How a move ended."""

    LANDED = "landed"
    FAILED = "failed"
    """Its bundle is elsewhere and both brokers are present: it expired, was declined or kept."""
    LOST = "lost"
    """One of its brokers went away."""
    EXPIRED = "expired"
    """No more was heard of it, one side did not report, or too many others were waited for."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """A move whose result is awaited; figures are predicted usage (fractions)."""

    source: str
    destination: str
    taken: float
    """Usage taken from the source."""
    added: float
    """Usage added to the destination."""
    counter: int = 0
    """Epoch counter of the record that it was based on."""
    generation: int = 0
    began_ms: int = 0
    """When its transfer was accepted (the store's clock); 0: not known."""
    served_ms: int = 0
    """When the destination confirmed that it serves (the store's clock); 0: not known."""
    place: int = 0
    """Its position in the plan: a stored state has the moves sorted by name."""
    outcome: MoveOutcome | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A broker that a plan touches: the model's figures when it was made, and reports since."""

    before: float
    predicted: float
    variance: float
    """Variance of ``predicted`` by chance."""
    cost: float
    """Usage per byte/s."""
    correction: float
    """Factor on its kind's cost, already included in ``cost``."""
    used_then: float
    """Usage in the last report before the plan."""
    traffic_then: float
    """Bytes/s in the same report."""
    strays: float
    """Standard deviation of a report's usage from what its traffic explains."""
    doubt: float = 0.0
    """Standard deviation of ``predicted``, by what is not known of what its bundles take."""
    shift: float = 0.0
    """Usage from later plans' moves, less what this plan's missing moves were to bring."""
    reported_ms: int = 0
    """Time of the last report counted."""
    reports: int = 0
    used: float = 0.0
    """Sum over the reports, as are the next two fields."""
    shifted: float = 0.0
    traffic: float = 0.0

    @property
    def realised(self) -> float:
        """Mean usage without what the plan did not cause; only with reports."""
        return (self.used - self.shifted) / self.reports

    @property
    def explained(self) -> float:
        """Usage that arrived with traffic; only with reports."""
        return self.cost * (self.traffic / self.reports - self.traffic_then)

    @property
    def surprise(self) -> float:
        """Usage that arrived without traffic; only with reports."""
        return self.used / self.reports - self.used_then - self.explained

    def noise(self, strays: float) -> float:
        """The variance of ``surprise`` that chance and doubt explain, if each report deviates by
        ``strays``; only with reports."""
        return strays**2 * (1 + 1 / self.reports) + self.doubt**2

    @property
    def forecast(self) -> Forecast:
        """The plan's forecast with its realised usage; only with reports."""
        return Forecast(self.before, self.predicted, self.realised)


@dataclass(frozen=True, slots=True)
class Noted:
    """One round's moves by bundle, and the brokers they touch."""

    round: int
    at_ms: int
    moves: dict[str, Awaited]
    sides: dict[str, Side]
    undoing: bool = False
    """Whether it undoes an earlier plan."""
    ended_ms: int = 0
    """When the last of its moves ended (batch timestamp); 0: not yet."""

    def landed(self) -> dict[str, Awaited]:
        """The moves whose bundle its new owner has reported."""
        return {b: m for b, m in self.moves.items() if m.outcome is MoveOutcome.LANDED}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The open plans and what settled ones taught; replaced, never changed."""

    plans: tuple[Noted, ...] = ()
    """Open plans, oldest first."""
    evidence: dict[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    """Broker to the times (ms) and logarithms of realised over predicted costs: see
    `trimtab.review.cost_correction`."""
    hand_overs: tuple[float, ...] = ()
    """Seconds that the last hand-overs took."""
    error: float = 0.0
    """Mean absolute difference of realised and predicted usage, over the last sides."""
    bias: float = 0.0
    """Mean of realised minus predicted usage, over the same sides."""
    sides: int = 0
    """Number of sides settled so far."""

    def having(self, noted: Noted) -> tuple[Ledger, int]:
        """The ledger with one more plan, and how many moves are given up for it."""
        plans, given_up = [*self.plans, noted], 0
        while len(plans) > 1 and sum(len(plan.moves) for plan in plans) > MOST_OPEN:
            given_up += len(plans.pop(0).moves)
        return replace(self, plans=tuple(plans)), given_up

    def counting(self, settled: Iterable[LandedMove]) -> Ledger:
        """The ledger with the errors of settled moves counted."""
        error, bias, sides = self.error, self.bias, self.sides
        for forecast in (f for move in settled for f in (move.left, move.joined)):
            sides += 1
            missed = forecast.realised - forecast.predicted
            part = 1 / min(sides, _RECENT)
            error += (abs(missed) - error) * part
            bias += (missed - bias) * part
        return replace(self, error=error, bias=bias, sides=sides)
