"""What came of a move, as a round's record tells it."""

from __future__ import annotations

import msgspec


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Of a broker's usage (fraction), for the time when the whole plan had landed."""

    before: float
    """Predicted without the plan."""
    predicted: float
    realised: float
    """As reported, less what later moves brought."""


class SettledMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move that landed, once both brokers had reported what came of it."""

    bundle: str
    source: str
    destination: str
    round: int
    """That decided it."""
    seconds: float
    """From the decision until it was settled."""
    left: ForecastRecord
    """Of the source."""
    joined: ForecastRecord
    """Of the destination."""
