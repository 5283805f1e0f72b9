"""The life of a kept plan, as one table: docs/plans.md draws it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class PlanState(StrEnum):
    """What has become of a plan."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    """A person said that it may run; none of it has begun."""
    RUNNING = "running"
    DONE = "done"
    """Each step has landed or was skipped, with the rule that decided."""
    REJECTED = "rejected"
    EXPIRED = "expired"
    OVERTAKEN = "overtaken"
    """A newer plan took its place."""
    CANCELLED = "cancelled"
    """What had not begun was called off."""
    UNDONE = "undone"
    """Another plan takes its moves back."""


class PlanEvent(StrEnum):
    """What happens to a plan: first the verbs of people."""

    APPROVE = "approve"
    REJECT = "reject"
    CANCEL = "cancel"
    UNDO = "undo"

    START = "start"
    FINISH = "finish"
    EXPIRE = "expire"
    OVERTAKE = "overtake"


VERBS: Final = frozenset({PlanEvent.APPROVE, PlanEvent.REJECT, PlanEvent.CANCEL, PlanEvent.UNDO})

TRANSITIONS: Final[Mapping[PlanState, Mapping[PlanEvent, PlanState]]] = MappingProxyType(
    {
        PlanState.PROPOSED: {
            PlanEvent.APPROVE: PlanState.APPROVED,
            PlanEvent.REJECT: PlanState.REJECTED,
            PlanEvent.EXPIRE: PlanState.EXPIRED,
            PlanEvent.OVERTAKE: PlanState.OVERTAKEN,
        },
        PlanState.APPROVED: {
            PlanEvent.START: PlanState.RUNNING,
            PlanEvent.CANCEL: PlanState.CANCELLED,
            PlanEvent.FINISH: PlanState.DONE,
            PlanEvent.EXPIRE: PlanState.EXPIRED,
        },
        PlanState.RUNNING: {
            PlanEvent.FINISH: PlanState.DONE,
            PlanEvent.CANCEL: PlanState.CANCELLED,
        },
        PlanState.DONE: {PlanEvent.UNDO: PlanState.UNDONE},
        PlanState.CANCELLED: {PlanEvent.UNDO: PlanState.UNDONE},
        PlanState.REJECTED: {},
        PlanState.EXPIRED: {},
        PlanState.OVERTAKEN: {},
        PlanState.UNDONE: {},
    }
)
"""The state of a plan after each event; all others are refused."""

UNDER_WAY: Final = frozenset({PlanState.APPROVED, PlanState.RUNNING})
OPEN: Final = UNDER_WAY | {PlanState.PROPOSED}


def allows(state: PlanState, event: PlanEvent) -> bool:
    """Whether ``event`` may happen to a plan in ``state``."""
    return event in TRANSITIONS[state]
