"""How far the ownership state can be trusted, and what each level allows."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from trimtab.settings import DoubtSettings


class Doubt(StrEnum):
    """Pulsar's states of the metadata store (ServiceUnitStateChannelImpl)."""

    STABLE = "stable"
    """Everything may be done."""
    JITTERY = "jittery"
    """Only failures are repaired, after a delay."""
    UNSTABLE = "unstable"
    """Read only."""


_SEVERAL: Final = 2
"""A single broker is never a reason for doubt, even in a small fleet."""


def gravest(levels: Iterable[Doubt]) -> Doubt:
    """The highest level among several causes; STABLE for none."""
    order = list(Doubt)
    return max(levels, key=order.index, default=Doubt.STABLE)


def doubt_of_silence(absent: int, brokers: int, settings: DoubtSettings) -> Doubt:
    """UNSTABLE where so many brokers are silent or lost that the network is the likelier cause."""
    many = max(_SEVERAL, settings.silent_brokers * brokers)
    return Doubt.UNSTABLE if absent >= many else Doubt.STABLE


def doubt_of_losses(lost: int, brokers: int, settings: DoubtSettings) -> Doubt:
    """JITTERY where many brokers were lost within a short time."""
    many = lost >= _SEVERAL and lost > settings.lost_brokers * brokers
    return Doubt.JITTERY if many else Doubt.STABLE
