"""Who may own a bundle: the state machine as one table, and the record it governs.

Three rules for whoever edits this file. Every legal change of a record is a row of TRANSITIONS, for
the Lua scripts are given this very table. No state may name two brokers that could both serve: in
RELEASING only ``owner`` serves, in ASSIGNING nobody does yet. And no row may take a bundle from a
broker that could be serving it unless that broker's lease is gone.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


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
    """``owner`` serves it until its parts stand in its place."""
    MERGING = "Merging"
    """``owner`` serves it, and the neighbour it is merged with, until the whole stands."""
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
    {
        Event.ASSIGN,
        Event.CLAIM,
        Event.SERVE,
        Event.RELEASE,
        Event.HAND_OVER,
        Event.DECLINE,
        Event.RETIRE,
    }
)
"""What a broker may ask for, and only for a bundle it owns or (CLAIM) that nobody does; ASSIGN,
where a lookup finds that nobody owns a bundle, for whomever it finds best.

CLAIM of what it owns already gives the record a new epoch: whatever the broker asked before it lost
its memory or its lease, and may yet arrive, is stale from then on."""

JOB_EVENTS = (frozenset(Event) - BROKER_EVENTS) | {Event.ASSIGN}
"""What the job, and operators through it, may ask for: nobody else speaks for a broker."""

SOON_MS: Final = 60_000
"""A broker that dies so soon after it got a bundle may have died of it."""

MOST_FALLS: Final = 3
"""So many owners in a row that died soon: whoever asks for the bundle then, the script does
QUARANTINE instead."""

LONGEST_LEASE_MS: Final = 10_000
"""What a broker is granted at most. Longer: a dead broker's bundles wait; shorter: a pause costs
some."""

REPLICA_LAG_S: Final = 3
"""A replica that has not acknowledged for longer does not count. The server counts whole seconds,
so a master that was left behind grants its last lease up to a second later. Shorter: a replica's
pause stops renewals, which a broker outlasts by two thirds of its lease."""

REPLICA_WAIT_MS: Final = 1000 * (REPLICA_LAG_S + 1)
"""So much longer a new master stays closed: until then the old one may have granted leases."""

CLOCK_MARGIN_MS: Final = 500
"""Between the server's clock and the caller's estimate of it, where a bundle is taken from a broker
whose lease ran out. With what the estimate itself may have missed, below the second that a broker
stops before its lease ends."""

STREAK_ENDS = frozenset({Event.RELEASE, Event.HAND_OVER, Event.RETIRE, Event.READMIT})
"""What a living owner or an operator does: the deaths before it count no longer."""


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


class Given(StrEnum):
    """What must be so besides; whoever becomes owner or destination must hold a lease anyway."""

    NOTHING = "nothing"
    OWNER_GONE = "owner-gone"
    """The owner's lease has run out."""
    OWNER_GONE_OR_JOB = "owner-gone-or-job"
    """The same, where the job need not wait: the owner does not serve yet."""


class Effect(NamedTuple):
    """What one event does to a record."""

    state: State
    owner: OwnerRule
    given: Given = Given.NOTHING


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
                Event.CLAIM: Effect(State.OWNED, OwnerRule.KEEP),
                Event.SERVE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE, Given.OWNER_GONE_OR_JOB),
                Event.DECLINE: Effect(State.FREE, OwnerRule.NOBODY),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY, Given.OWNER_GONE_OR_JOB),
                Event.QUARANTINE: Effect(
                    State.QUARANTINED, OwnerRule.NOBODY, Given.OWNER_GONE_OR_JOB
                ),
            }
        ),
        State.OWNED: MappingProxyType(
            {
                Event.CLAIM: Effect(State.OWNED, OwnerRule.KEEP),
                Event.UNLOAD: Effect(State.RELEASING, OwnerRule.KEEP),
                Event.TRANSFER: Effect(State.RELEASING, OwnerRule.KEEP_AIM),
                Event.SPLIT: Effect(State.SPLITTING, OwnerRule.KEEP),
                Event.MERGE: Effect(State.MERGING, OwnerRule.KEEP),
                Event.RELEASE: Effect(State.FREE, OwnerRule.NOBODY),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE, Given.OWNER_GONE),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY, Given.OWNER_GONE),
                Event.QUARANTINE: Effect(State.QUARANTINED, OwnerRule.NOBODY, Given.OWNER_GONE),
            }
        ),
        State.RELEASING: MappingProxyType(
            {
                Event.CLAIM: Effect(State.OWNED, OwnerRule.KEEP),
                Event.RELEASE: Effect(State.FREE, OwnerRule.NOBODY),
                Event.HAND_OVER: Effect(State.ASSIGNING, OwnerRule.DESTINATION),
                Event.DECLINE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE, Given.OWNER_GONE),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY, Given.OWNER_GONE),
                Event.QUARANTINE: Effect(State.QUARANTINED, OwnerRule.NOBODY, Given.OWNER_GONE),
            }
        ),
        State.SPLITTING: MappingProxyType(
            {
                Event.CLAIM: Effect(State.OWNED, OwnerRule.KEEP),
                Event.RETIRE: Effect(State.DELETED, OwnerRule.NOBODY),
                Event.DECLINE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE, Given.OWNER_GONE),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY, Given.OWNER_GONE),
                Event.QUARANTINE: Effect(State.QUARANTINED, OwnerRule.NOBODY, Given.OWNER_GONE),
            }
        ),
        State.MERGING: MappingProxyType(
            {
                Event.CLAIM: Effect(State.OWNED, OwnerRule.KEEP),
                Event.RETIRE: Effect(State.DELETED, OwnerRule.NOBODY),
                Event.DECLINE: Effect(State.OWNED, OwnerRule.KEEP),
                Event.KEEP: Effect(State.OWNED, OwnerRule.KEEP),
                Event.ASSIGN: Effect(State.ASSIGNING, OwnerRule.TAKE, Given.OWNER_GONE),
                Event.LOSE: Effect(State.FREE, OwnerRule.NOBODY, Given.OWNER_GONE),
                Event.QUARANTINE: Effect(State.QUARANTINED, OwnerRule.NOBODY, Given.OWNER_GONE),
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
