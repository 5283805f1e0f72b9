"""Who may own a bundle: the state machine as one table, and the record it governs.

Three rules for edits to this file. Every legal change of a record is a row of TRANSITIONS, because
the Lua scripts get this same table. No state may name two brokers that could both serve: in
RELEASING only ``owner`` serves, in ASSIGNING no broker does yet. No row may take a bundle from a
broker that could be serving it unless that broker's lease is gone.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(StrEnum):
    """The state of a bundle's ownership."""

    FREE = "Free"
    """The bundle has no owner; the next lookup or round places it. A bundle without a record is
    free."""
    ASSIGNING = "Assigning"
    """The bundle was given to ``owner``, which has not yet confirmed that it serves it."""
    OWNED = "Owned"
    """``owner`` serves the bundle while it also holds its lease."""
    RELEASING = "Releasing"
    """``owner`` still serves the bundle and drains it; ``destination``, if any, is ready and
    waits."""
    SPLITTING = "Splitting"
    """``owner`` serves the bundle until its children replace it."""
    MERGING = "Merging"
    """``owner`` serves the bundle and the neighbour with which it is merged, until the merged
    bundle replaces both."""
    DELETED = "Deleted"
    """The range is no longer a bundle: it was split or merged away."""
    QUARANTINED = "Quarantined"
    """Several owners in a row died soon after they got the bundle. It has no owner until an
    operator readmits it."""


WITHOUT_OWNER: Final = frozenset({State.FREE, State.DELETED, State.QUARANTINED})
"""The states whose records name no owner; those of all others do."""


SERVING: Final = frozenset({State.OWNED, State.RELEASING, State.SPLITTING, State.MERGING})
"""States in which the record's owner serves clients."""


class Event(StrEnum):
    """What happens to a record: first the job's and operators' events, then the brokers'."""

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
"""What a broker may ask for, and only for a bundle that it owns or (CLAIM) that has no owner. A
broker asks for ASSIGN where a lookup finds no owner: it names the broker it finds best.

CLAIM by the present owner gives the record a new epoch: requests that the broker sent before it
lost its memory or its lease are stale from then on, if they still arrive."""

JOB_EVENTS = (frozenset(Event) - BROKER_EVENTS) | {Event.ASSIGN}
"""What the job, and operators through it, may ask for: only they act for a broker."""

MOST_CHILDREN: Final = 1_025
"""Children of one split, so an operator may name one position less. One script run creates them and
writes their records in one command, which Lua limits to some 4,000."""

SOON_MS: Final = 60_000
"""If a broker dies within this time after it got a bundle, the bundle may be the cause."""

MOST_FALLS: Final = 3
"""After this many owners in a row died soon, the script does QUARANTINE for the next request that
would give the bundle a new owner."""

LONGEST_LEASE_MS: Final = 10_000
"""The longest lease a broker is granted. Longer: a dead broker's bundles wait; shorter: a pause
costs a broker its bundles."""

REPLICA_LAG_S: Final = 3
"""A replica that has not acknowledged for longer does not count. The server counts whole seconds,
so a master that was replaced grants its last lease up to a second later. Shorter: a replica's pause
stops renewals; a broker survives that for two thirds of its lease."""

REPLICA_WAIT_MS: Final = 1000 * (REPLICA_LAG_S + 1)
"""The extra time a new master stays closed: until then the old one may have granted leases."""

CLOCK_MARGIN_MS: Final = 500
"""The largest accepted difference between the server's clock and the caller's estimate of it, where
a bundle is taken from a broker whose lease ran out. Together with the estimate's own error it is
below the second by which a broker stops before its lease ends."""

STREAK_ENDS = frozenset({Event.RELEASE, Event.HAND_OVER, Event.RETIRE, Event.READMIT})
"""Events of a living owner or an operator: deaths before them no longer count."""


class OwnerRule(StrEnum):
    """The owner that the record then names. Every rule but KEEP_AIM clears ``destination``."""

    KEEP = "keep"
    KEEP_AIM = "keep-aim"
    """The owner stays; the request's broker, if any, becomes ``destination``."""
    TAKE = "take"
    """The request's broker becomes the owner."""
    DESTINATION = "destination"
    """The record's destination becomes the owner."""
    NOBODY = "nobody"


class Given(StrEnum):
    """A further condition; a new owner or destination must hold a lease in any case."""

    NOTHING = "nothing"
    OWNER_GONE = "owner-gone"
    """The owner's lease has run out."""
    OWNER_GONE_OR_JOB = "owner-gone-or-job"
    """The owner's lease has run out; the job need not wait for that: the owner serves nothing yet.
    """


class Effect(NamedTuple):
    """What one event does to a record."""

    state: State
    owner: OwnerRule
    given: Given = Given.NOTHING


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
