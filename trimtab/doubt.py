"""How far the state of ownership can be trusted, and what may be done at each level."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from trimtab.settings import DoubtSettings


class Doubt(StrEnum):
    """Pulsar's states of the metadata store (ServiceUnitStateChannelImpl)."""

    STABLE = "stable"
    """Act."""
    JITTERY = "jittery"
    """Failures only, and those after a delay."""
    UNSTABLE = "unstable"
    """Read only."""


_SEVERAL: Final = 2
"""One broker alone is no reason to doubt, however small the fleet."""


def gravest(levels: Iterable[Doubt]) -> Doubt:
    """The level that several causes amount to; STABLE for none."""
    order = list(Doubt)
    return max(levels, key=order.index, default=Doubt.STABLE)


def doubt_of_silence(absent: int, brokers: int, settings: DoubtSettings) -> Doubt:
    """When so many of the brokers are silent or lost: rather the network than they."""
    many = max(_SEVERAL, settings.silent_brokers * brokers)
    return Doubt.UNSTABLE if absent >= many else Doubt.STABLE


def doubt_of_losses(lost: int, brokers: int, settings: DoubtSettings) -> Doubt:
    """When so many of the brokers were lost within a short time."""
    many = lost >= _SEVERAL and lost > settings.lost_brokers * brokers
    return Doubt.JITTERY if many else Doubt.STABLE
