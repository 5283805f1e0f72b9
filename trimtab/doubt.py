"""How far the state of ownership can be trusted, and what may be done at each level."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Doubt(StrEnum):
    """Pulsar's states of the metadata store (ServiceUnitStateChannelImpl)."""

    STABLE = "stable"
    """Act."""
    JITTERY = "jittery"
    """Failures only, and those after a delay."""
    UNSTABLE = "unstable"
    """Read only."""


def gravest(levels: Iterable[Doubt]) -> Doubt:
    """The level that several causes amount to; STABLE for none."""
    order = list(Doubt)
    return max(levels, key=order.index, default=Doubt.STABLE)
