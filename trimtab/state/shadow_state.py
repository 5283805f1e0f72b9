"""The memory of a shadow: its world, its rounds, and the results of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from trimtab.load_model.resources.costs import Costs
from trimtab.state.round_state import RoundState

DAY_MS: Final = 86_400_000

_MOST: Final = 100_000
"""Limit on the departures remembered per side, however many there were within the day."""


class Contest(NamedTuple):
    """The strategies compared: the names in the settings ``round`` and ``shadow``."""

    shedding: str
    placement: str
    challenger: str
    challenger_placement: str


class Moved(Protocol):
    """A move: a plan's, or one in a round's record."""

    @property
    def bundle(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def destination(self) -> str: ...


class Departure(NamedTuple):
    """A bundle's departure from a broker (batch timestamp)."""

    at_ms: int
    bundle: str
    broker: str


@dataclass(frozen=True, slots=True)
class Tally:
    """One side's totals since the comparison began."""

    moves: int = 0
    bounces: int = 0
    """Moves of a bundle to a broker that it left within the last day."""
    ranges: float = 0.0
    """Sum of the usage ranges (fractions) that its rounds found."""
    left: tuple[Departure, ...] = ()
    """Departures of the last day, oldest first."""

    def after(self, moves: Sequence[Moved], found: float | None, now_ms: int) -> Tally:
        """The totals one round later; ``found`` is the range it found, None if not counted."""
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
    """One cluster's shadow; replaced, never changed."""

    contest: Contest
    since_ms: int
    """When the comparison last began (batch timestamp)."""
    at_ms: int
    """When its last round was (batch timestamp)."""
    round: RoundState
    """The shadow's own round state."""
    costs: tuple[Costs, ...]
    """Costs of the resources in `trimtab.shadow.overlay.FOLLOWING`."""
    rounds: int = 0
    """Number of rounds in which both sides' ranges are known."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Bundle to broker in the shadow's world, where that is not the broker that really has the
    bundle or is to get it."""
    champion: Tally = field(default_factory=Tally)
    challenger: Tally = field(default_factory=Tally)
