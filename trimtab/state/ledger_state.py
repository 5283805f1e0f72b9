"""What is remembered of moves until it is known what came of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from trimtab.plan import Forecast, LandedMove

MOST_OPEN: Final = 4096
"""Moves that are waited for; older plans are given up for newer ones."""
_RECENT: Final = 100.0
"""Sides that the means of the error tell of."""


class MoveOutcome(StrEnum):
    """How a move ended."""

    LANDED = "landed"
    FAILED = "failed"
    """Its bundle is elsewhere, and both brokers are there: it expired, was declined or kept."""
    LOST = "lost"
    """One of its brokers went away."""
    EXPIRED = "expired"
    """It was not heard of again, one side did not report, or too much else was waited for."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """A move; figures are predicted usage (fractions)."""

    source: str
    destination: str
    taken: float
    """Of the source."""
    added: float
    """To the destination."""
    counter: int = 0
    """Of the record's epoch that it was decided on."""
    generation: int = 0
    began_ms: int = 0
    """When its transfer was accepted (the store's clock); 0: not heard."""
    served_ms: int = 0
    """When the destination said that it serves."""
    place: int = 0
    """In its plan: a state that was stored has the moves by name."""
    outcome: MoveOutcome | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A broker that a plan touches: what the model said when it was made, and reports since."""

    before: float
    predicted: float
    variance: float
    """Of ``predicted``, by chance."""
    cost: float
    """Usage of a byte/s."""
    correction: float
    """Of its kind's cost, that is in ``cost``."""
    used_then: float
    """Usage by the last report before the plan."""
    traffic_then: float
    """Bytes/s by the same."""
    strays: float
    """Standard deviation of a report's usage about what its traffic explains."""
    shift: float = 0.0
    """Usage that it has beside what the plan was to bring."""
    reported_ms: int = 0
    """The report that was counted last."""
    reports: int = 0
    used: float = 0.0
    """Sum over the reports, as are the next two."""
    shifted: float = 0.0
    traffic: float = 0.0

    @property
    def realised(self) -> float:
        """Usage, less what is not the plan's; only with reports."""
        return (self.used - self.shifted) / self.reports

    @property
    def explained(self) -> float:
        """Usage that came with traffic; only with reports."""
        return self.cost * (self.traffic / self.reports - self.traffic_then)

    @property
    def surprise(self) -> float:
        """Usage that came without; only with reports."""
        return self.used / self.reports - self.used_then - self.explained

    def noise(self, strays: float) -> float:
        """Variance of ``surprise`` where there is none and reports stray so far; only with
        reports."""
        return strays**2 * (1 + 1 / self.reports)

    @property
    def forecast(self) -> Forecast:
        """Only with reports."""
        return Forecast(self.before, self.predicted, self.realised)


@dataclass(frozen=True, slots=True)
class Noted:
    """One round's moves by bundle, and the brokers they touch."""

    round: int
    at_ms: int
    moves: dict[str, Awaited]
    sides: dict[str, Side]
    undoing: bool = False
    """Whether it takes an earlier plan back."""
    ended_ms: int = 0
    """When the last of its moves had ended (batch timestamp); 0: not yet."""

    def landed(self) -> dict[str, Awaited]:
        """Moves that the bundle's new owner has reported."""
        return {b: m for b, m in self.moves.items() if m.outcome is MoveOutcome.LANDED}


@dataclass(frozen=True, slots=True)
class Ledger:
    """Replaced, never changed."""

    plans: tuple[Noted, ...] = ()
    """Open ones, oldest first."""
    evidence: dict[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    """Broker to the times (ms) and logarithms of realised over predicted costs: see
    `trimtab.review.cost_correction`."""
    hand_overs: tuple[float, ...] = ()
    """Seconds that the last ones took."""
    error: float = 0.0
    """Mean absolute difference of realised and predicted usage, of the last sides."""
    bias: float = 0.0
    """Mean of realised less predicted usage, of the same."""
    sides: int = 0
    """That were settled so far."""

    def having(self, noted: Noted) -> tuple[Ledger, int]:
        """With one more plan, and how many moves are given up for it."""
        plans, given_up = [*self.plans, noted], 0
        while len(plans) > 1 and sum(len(plan.moves) for plan in plans) > MOST_OPEN:
            given_up += len(plans.pop(0).moves)
        return replace(self, plans=tuple(plans)), given_up

    def counting(self, settled: Iterable[LandedMove]) -> Ledger:
        """With the errors of moves that were settled."""
        error, bias, sides = self.error, self.bias, self.sides
        for forecast in (f for move in settled for f in (move.left, move.joined)):
            sides += 1
            missed = forecast.realised - forecast.predicted
            part = 1 / min(sides, _RECENT)
            error += (abs(missed) - error) * part
            bias += (missed - bias) * part
        return replace(self, error=error, bias=bias, sides=sides)
