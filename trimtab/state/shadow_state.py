"""What is remembered of a challenger: its world, its rounds, and how both sides have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from trimtab.load_model.costs import Costs
from trimtab.plan import Move
from trimtab.state.round_state import RoundState

DAY_MS: Final = 86_400_000

_MOST: Final = 100_000
"""Departures that are remembered of a side, however many there were within the day."""


class Contest(NamedTuple):
    """Who is compared: the names in ``round`` and in ``shadow`` of the settings."""

    shedding: str
    placement: str
    challenger: str
    challenger_placement: str


class Departure(NamedTuple):
    """A bundle left a broker (batch timestamp)."""

    at_ms: int
    bundle: str
    broker: str


@dataclass(frozen=True, slots=True)
class Tally:
    """What one side has done since the comparison began."""

    moves: int = 0
    bounces: int = 0
    """Moves of a bundle to a broker that it left within a day."""
    ranges: float = 0.0
    """Sum of the usage ranges (fractions) that its rounds found."""
    left: tuple[Departure, ...] = ()
    """Departures of the last day, oldest first."""

    def after(self, moves: Sequence[Move], found: float | None, now_ms: int) -> Tally:
        """One round later; ``found`` is the range that it found, None if it is not to count."""
        past_ms = now_ms - DAY_MS
        left = self.left
        if left and left[0].at_ms < past_ms:
            left = tuple(departure for departure in left if departure.at_ms >= past_ms)
        bounces = 0
        if moves:
            known = {(departure.bundle, departure.broker) for departure in left}
            bounces = sum((move.bundle, move.destination) in known for move in moves)
            left += tuple(Departure(now_ms, move.bundle, move.source) for move in moves)
        return Tally(
            moves=self.moves + len(moves),
            bounces=self.bounces + bounces,
            ranges=self.ranges + (found or 0.0),
            left=left[-_MOST:],
        )


@dataclass(frozen=True, slots=True)
class Shadow:
    """Of one cluster. Replaced, never changed."""

    contest: Contest
    since_ms: int
    """When the comparison began, or began anew (batch timestamp)."""
    at_ms: int
    """Its last round (batch timestamp)."""
    round: RoundState
    """The challenger's own."""
    costs: tuple[Costs, ...]
    """Of the resources in `trimtab.shadow.overlay.FOLLOWING`."""
    rounds: int = 0
    """Those of which both ranges are known."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Bundle to broker in the challenger's world, where that is not the broker that really has, or
    is to have, the bundle."""
    champion: Tally = field(default_factory=Tally)
    challenger: Tally = field(default_factory=Tally)
