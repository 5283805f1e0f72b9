"""The rules for a bundle's successive changes: states, events, and the brokers named."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from trimtab.ownership import Event, State
from trimtab.wire.ownership import NO_RECORD, Change, Record


class ViolationKind(StrEnum):
    """The kinds of finding; docs/audit.md explains each and what to do."""

    CONFLICT = "conflict"
    """Two different records have the same epoch."""
    BACKWARD = "backward"
    """A new record has an epoch below those journalled before."""
    GENERATION = "generation"
    """A generation goes back, or a command's generation is not its epoch's."""
    GAP = "gap"
    """A change between two others is not in the journal."""
    STEP = "step"
    """No rule leads from one record to the next."""
    TWO_OWNERS = "two-owners"
    """A broker serves after another without having been given the bundle."""
    OVERLAP = "overlap"
    """Two bundles cover the same part of the ring."""
    HOLE = "hole"
    """The bundles covered the ring, and no longer do."""
    UNANSWERED = "unanswered"
    """A command did not end in time."""
    UNFOUNDED = "unfounded"
    """A command names an epoch that no change of its bundle has."""
    UNJOURNALLED = "unjournalled"
    """Redis has a record that the journal does not know."""
    BEHIND = "behind"
    """The journal knows a newer record than Redis."""
    INCOMPLETE = "incomplete"
    """A namespace's bundles have never covered the ring: the others were not requested yet."""
    LOST = "lost"
    """A journalled change was lost with a store, and a later generation went on without it."""


NOTES: Final = frozenset({ViolationKind.INCOMPLETE, ViolationKind.LOST})
"""Findings that are worth reporting but break no rule."""


class RuleBreach(NamedTuple):
    """A broken rule and its details."""

    kind: ViolationKind
    detail: str


SERVING: Final = frozenset({State.OWNED, State.RELEASING, State.SPLITTING, State.MERGING})

ENDING: Final = MappingProxyType({1: State.SPLITTING, 2: State.MERGING})
"""Number of parents of a new bundle to their last state: one is split, two are merged."""

_HELD: Final = SERVING | {State.ASSIGNING}

_ASKED: Final = {
    (State.FREE, State.OWNED): {Event.CLAIM},
    (State.ASSIGNING, State.OWNED): {Event.SERVE},
    (State.ASSIGNING, State.FREE): {Event.DECLINE},
    (State.OWNED, State.RELEASING): {Event.UNLOAD, Event.TRANSFER},
    (State.OWNED, State.SPLITTING): {Event.SPLIT},
    (State.OWNED, State.MERGING): {Event.MERGE},
    (State.OWNED, State.FREE): {Event.RELEASE},
    (State.RELEASING, State.FREE): {Event.RELEASE},
    (State.RELEASING, State.ASSIGNING): {Event.HAND_OVER},
    (State.RELEASING, State.OWNED): {Event.DECLINE, Event.KEEP},
    (State.SPLITTING, State.OWNED): {Event.DECLINE, Event.KEEP},
    (State.SPLITTING, State.DELETED): {Event.RETIRE},
    (State.MERGING, State.OWNED): {Event.DECLINE, Event.KEEP},
    (State.MERGING, State.DELETED): {Event.RETIRE},
    (State.QUARANTINED, State.FREE): {Event.READMIT},
}
"""Transitions while the owner lives."""

_AGAIN: Final = {(state, State.OWNED): {Event.CLAIM} for state in _HELD}
"""Transitions by the owner itself: the new epoch makes its earlier requests stale."""

_TAKEN: Final = {
    **{(state, State.ASSIGNING): {Event.ASSIGN} for state in (*_HELD, State.FREE)},
    **{(state, State.FREE): {Event.LOSE} for state in _HELD},
    **{(state, State.QUARANTINED): {Event.QUARANTINE} for state in (*_HELD, State.FREE)},
}
"""Transitions from no owner, or from one that is dead or does not serve yet; the event alone shows
which."""

CAUSES: Final[Mapping[tuple[State, State], frozenset[Event]]] = MappingProxyType(
    {
        step: frozenset().union(*(rules.get(step, ()) for rules in (_ASKED, _AGAIN, _TAKEN)))
        for step in _ASKED.keys() | _AGAIN.keys() | _TAKEN.keys()
    }
)


def server(record: Record) -> str | None:
    """The broker that may serve, by the record."""
    return record.owner if record.state in SERVING else None


def stands(record: Record) -> bool:
    """Whether the bundle is part of its namespace's ring."""
    return record.state is not State.DELETED


def is_birth(change: Change) -> bool:
    """Whether a bundle begins, or begins again, from one that was split or two merged."""
    return change.event is Event.RETIRE and change.record.state is State.OWNED


def may_skip(change: Change) -> bool:
    """Whether a bundle's epochs may jump to this one: a child or merged bundle starts above its
    parents, and a record that only brokers remembered starts above what the store had lost."""
    return is_birth(change) or change.event is Event.RESTORE


def misstep(before: Record, change: Change) -> RuleBreach | None:
    """What is wrong with a change that follows ``before``, apart from the two epochs."""
    after = change.record
    if is_birth(change):
        if stands(before) and before is not NO_RECORD:
            return RuleBreach(ViolationKind.STEP, f"it is born while it is {before.state}")
        return None
    if change.event is Event.RESTORE:
        # The store was lost: what led to the record may be lost too.
        return None
    gave, got = server(before), server(after)
    if gave is not None and got is not None and gave != got:
        return RuleBreach(
            ViolationKind.TWO_OWNERS,
            f"{gave} serves it, then {got}, with no change of owner between",
        )
    if change.event not in CAUSES.get((before.state, after.state), ()):
        return RuleBreach(
            ViolationKind.STEP, f"{change.event} does not lead from {before.state} to {after.state}"
        )
    if not _names_rightly(before, change):
        return RuleBreach(
            ViolationKind.STEP, f"{change.event} names {after.owner}, to {after.destination}"
        )
    return None


def _names_rightly(before: Record, change: Change) -> bool:
    after = change.record
    if after.destination is not None and (
        change.event is not Event.TRANSFER or after.destination == after.owner
    ):
        return False
    if after.state not in _HELD:
        return after.owner is None
    if before.state is State.FREE or change.event is Event.ASSIGN:
        return after.owner is not None
    heir = before.destination if change.event is Event.HAND_OVER else before.owner
    return after.owner is not None and after.owner == heir
