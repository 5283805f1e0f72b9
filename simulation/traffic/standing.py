"""What may become of a topic in a cluster's log: a table of standings and events.

active      takes writes
terminated  takes none for good; producers are on the other cluster, consumers read the rest
removed     nothing is left of it but what a return needs: its next entry, and who wrote and read
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Standing(StrEnum):
    """What a topic may do here."""

    ACTIVE = "active"
    TERMINATED = "terminated"
    REMOVED = "removed"


class Step(StrEnum):
    """What the agent has done with it."""

    TERMINATE = "terminate"
    REMOVE = "remove"
    REOPEN = "reopen"


AFTER: Final[Mapping[Step, Mapping[Standing, Standing]]] = MappingProxyType(
    {
        Step.TERMINATE: {
            Standing.ACTIVE: Standing.TERMINATED,
            Standing.TERMINATED: Standing.TERMINATED,
            Standing.REMOVED: Standing.REMOVED,
        },
        Step.REMOVE: {
            Standing.TERMINATED: Standing.REMOVED,
            Standing.REMOVED: Standing.REMOVED,
        },
        Step.REOPEN: dict.fromkeys(Standing, Standing.ACTIVE),
    }
)
"""Every step may be repeated: an agent does so when an answer was lost. What is not in the table is
refused: a topic that still takes writes is not removed."""


class IllegalStep(ValueError):
    """A step that the topic's standing does not allow."""


def stand_after(topic: str, standing: Standing, step: Step) -> Standing:
    """The topic's standing after a step; raises IllegalStep."""
    after = AFTER[step].get(standing)
    if after is None:
        raise IllegalStep(f"{topic} is {standing.value}: it cannot {step.value}")
    return after
