"""Who may own a bundle: the state machine as one table, and the record it governs.

Two rules for whoever edits this file. Every legal change of a record is a row of TRANSITIONS, for
the Lua scripts are given this very table. And no state may name two brokers that could both serve:
in RELEASING only ``owner`` serves, in ASSIGNING nobody does yet.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class State(StrEnum):
    """Where a bundle's ownership stands."""

    FREE = "Free"
    """Nobody owns it: the next lookup or round places it. A bundle without a record is free."""
    ASSIGNING = "Assigning"
    """Given to ``owner``, which has not said that it serves."""
    OWNED = "Owned"
    """``owner`` serves it, as long as it also holds its lease."""
    RELEASING = "Releasing"
    """``owner`` still serves while it drains; ``destination``, if any, is warm and waits."""
    SPLITTING = "Splitting"
    MERGING = "Merging"
    DELETED = "Deleted"
    """The range is no longer a bundle: it was split or merged away."""
    QUARANTINED = "Quarantined"
    """Its owners died one after another; an operator readmits it."""


class Event(StrEnum):
    """What happens to a record; the job's and operators' first, the brokers' below."""

    ASSIGN = "assign"
    UNLOAD = "unload"
    TRANSFER = "transfer"
    SPLIT = "split"
    MERGE = "merge"
    LOSE = "lose"
    KEEP = "keep"
    QUARANTINE = "quarantine"
    READMIT = "readmit"
    RESTORE = "restore"

    CLAIM = "claim"
    SERVE = "serve"
    RELEASE = "release"
    HAND_OVER = "hand-over"
    DECLINE = "decline"
    RETIRE = "retire"


BROKER_EVENTS = frozenset(
    {Event.CLAIM, Event.SERVE, Event.RELEASE, Event.HAND_OVER, Event.DECLINE, Event.RETIRE}
)
"""What a broker may ask for, and only for a bundle it owns (CLAIM: for itself). The job, and
operators through it, may ask for all others and for none of these: nobody speaks for a broker."""


class OwnerRule(StrEnum):
    """Whom the record names afterwards. Every rule but KEEP_AIM and AIM clears ``destination``."""

    KEEP = "keep"
    KEEP_AIM = "keep-aim"
    """The owner stays; the request's broker becomes ``destination`` (may be nobody)."""
    TAKE = "take"
    """The request's broker becomes the owner."""
    DESTINATION = "destination"
    """The record's destination becomes the owner."""
    NOBODY = "nobody"


class Effect(NamedTuple):
    """What one event does to a record."""

    state: State
    owner: OwnerRule


class IllegalTransition(ValueError):
    """An event that the table does not allow in this state; names state, event and bundle."""

    def __init__(self, state: State, event: Event, bundle: str) -> None:
        super().__init__(f"{event.value} is not possible while {bundle} is {state.value}")
        self.state, self.event, self.bundle = state, event, bundle


TRANSITIONS: MappingProxyType[State, MappingProxyType[Event, Effect]] = MappingProxyType(
    {
        State.FREE: MappingProxyType(
            {
                Event.CLAIM: Effect(State.OWNED, OwnerRule.TAKE),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE),
                Event.QUARANTINE: Effect(State.QUARANTINED, OwnerRule.NOBODY),
            }
        ),
        State.ASSIGNING: MappingProxyType(
            {
                Event.SERVE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE),
                Event.DECLINE: Effect(State.FREE, OwnerRule.NOBODY),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.OWNED: MappingProxyType(
            {
                Event.UNLOAD: Effect(State.RELEASING, OwnerRule.KEEP),
                Event.TRANSFER: Effect(State.RELEASING, OwnerRule.KEEP_AIM),
                Event.SPLIT: Effect(State.SPLITTING, OwnerRule.KEEP),
                Event.MERGE: Effect(State.MERGING, OwnerRule.KEEP),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.RELEASING: MappingProxyType(
            {
                Event.RELEASE: Effect(State.FREE, OwnerRule.NOBODY),
                Event.HAND_OVER: Effect(State.ASSIGNING, OwnerRule.DESTINATION),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.SPLITTING: MappingProxyType(
            {
                Event.RETIRE: Effect(State.DELETED, OwnerRule.NOBODY),
                Event.DECLINE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.MERGING: MappingProxyType(
            {
                Event.RETIRE: Effect(State.DELETED, OwnerRule.NOBODY),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.DELETED: MappingProxyType(
            {
                Event.RESTORE: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
        State.QUARANTINED: MappingProxyType(
            {
                Event.READMIT: Effect(State.FREE, OwnerRule.NOBODY),
            }
        ),
    }
)


def effect_of(event: Event, state: State, bundle: str) -> Effect:
    """What ``event`` does to a record in ``state``; raises IllegalTransition."""
    effect = TRANSITIONS[state].get(event)
    if effect is None:
        raise IllegalTransition(state, event, bundle)
    return effect
