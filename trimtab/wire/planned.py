"""Parts of a round's record: what was planned or refused, and the results of earlier moves."""

from __future__ import annotations

import msgspec


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    source: str
    destination: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""
    """What the plan does, in figures, for people."""


class RefusedMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wish that was not granted, and the rule that decided."""

    bundle: str
    source: str
    rule: str
    destination: str | None = None


class PlannedSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A split in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    broker: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""
    algorithm: str = ""
    """Instead of the one in the round's ``division``, if it is not empty."""
    positions: tuple[int, ...] = ()


class PlannedMerge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A merge in a round's record; the epochs are those of the two ownership records."""

    bundle: str
    neighbour: str
    """The bundle just above."""
    broker: str
    reason: str
    epoch: tuple[int, int]
    neighbour_epoch: tuple[int, int]
    why: str = ""


class PlannedRepair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A repair in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    event: str
    reason: str
    epoch: tuple[int, int]
    broker: str | None = None
    """The broker that gets or keeps it; it receives a command."""
    why: str = ""


class HeldChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that strategies want and that wait for a person or for a window. If there are very
    many, only the first ones of each kind are listed."""

    changes: int
    """Number of all these changes."""
    moves: tuple[PlannedMove, ...] = ()
    splits: tuple[PlannedSplit, ...] = ()
    merges: tuple[PlannedMerge, ...] = ()


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's usage (fraction) after the whole plan has landed, predicted and realised."""

    before: float
    """Predicted without the plan."""
    predicted: float
    realised: float
    """Reported usage without the load that later moves brought."""


class SettledMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move that landed, with its result after both brokers reported it."""

    bundle: str
    source: str
    destination: str
    round: int
    """The round that decided it."""
    seconds: float
    """From the decision until it was settled."""
    left: ForecastRecord
    """The forecast for the source."""
    joined: ForecastRecord
    """The forecast for the destination."""
