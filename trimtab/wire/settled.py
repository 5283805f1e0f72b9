"""The result of a move, as a round's record contains it."""

from __future__ import annotations

import msgspec


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's usage (fraction) after the whole plan has landed, predicted and realised."""

    before: float
    """Predicted without the plan."""
    predicted: float
    realised: float
    """As reported, less the load that later moves brought."""


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
