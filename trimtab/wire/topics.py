"""A topic's record while it migrates, and the request by which its owner changes it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from trimtab.migration.topic_life import TopicEvent, TopicState
from trimtab.model import NO_EPOCH, Epoch

LONGEST_PROBLEM: Final = 300
"""Characters that are kept of why a step failed: a thousand topics' reasons are read at once."""
MOST_NAMED: Final = 5
"""Subscriptions, or regions, that a record names. Fewer: the operator asks one team, and meets the
next one afterwards; more: ten thousand records fill Redis with names."""


class Waiting(msgspec.Struct, frozen=True):
    """What keeps a topic on blue: a subscription that has not read it all, or a region that lacks
    some of it."""

    name: str
    """The subscription, or the cluster of the other region."""
    messages: int
    """That it has still to get."""


class TopicRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a topic has come, in the hash of its namespace."""

    state: TopicState
    migration: str
    """The id of the migration that it is part of."""
    wave: int = 0
    epoch: Epoch = NO_EPOCH
    """The epoch of its bundle's record when it was written."""
    backlog: int = 0
    """Messages left on blue once it is terminated."""
    subscription: str = ""
    """The one that has the most of them to read, the first of ``subscriptions``."""
    subscriptions: tuple[Waiting, ...] = ()
    """Those that have some of them to read: who wonders what a topic waits for asks them. Those
    with the most, which come first, and MOST_NAMED of them at most."""
    regions: tuple[Waiting, ...] = ()
    """The clusters of other regions that lack messages of it, in the same way: until they have
    them its producers wait."""
    more: int = 0
    """How many subscriptions, or regions, there are beside those that are named."""
    stays: bool = False
    """A rollback leaves it on green: it began there, or a rollback found a write of it."""
    began: bool = False
    """It began on green: blue never had it."""
    back: bool = False
    """It was taken back from green, and is active again: its owner opens it."""
    lost: bool = False
    """It stays on green because blue had lost it when a rollback asked for it."""
    gone: str = ""
    """It stays, and has gone on from green: the web service of the cluster where green's own
    migration has sent its clients."""
    via: str = ""
    """The id of the migration to whose green its producers have gone, if that is an earlier one: it
    stayed there when that was rolled back, and ``migration`` counts it."""
    problem: str = ""
    """Why its last step failed; empty once one succeeded."""
    v: int = 1

    @property
    def led_by(self) -> str:
        """The id of the migration to whose green its clients are sent."""
        return self.via or self.migration


class TopicChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of the broker that owns ``bundle``: do ``event`` to ``topic`` if its state is
    ``expect``. Without an event only its backlog, with what it waits for, and ``problem`` are
    noted."""

    topic: str
    bundle: str
    position: int
    """The topic's position on the ring (`trimtab.store.ring.position`)."""
    epoch: Epoch
    """The epoch of the bundle's record, by which the broker serves it."""
    migration: str
    expect: TopicState
    event: TopicEvent | None = None
    wave: int = 0
    """The topic's wave; ENLIST and START_ON_GREEN note it."""
    backlog: int = 0
    subscription: str = ""
    """The one that has the most of the backlog."""
    subscriptions: tuple[Waiting, ...] = ()
    """All that have some of it, as far as a record names them."""
    regions: tuple[Waiting, ...] = ()
    more: int = 0
    gone: str = ""
    """With STAY: where green has sent the topic's clients on; empty if it has not."""
    problem: str = ""
    """Why a step failed, in LONGEST_PROBLEM characters at most."""


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle whose topics of the waves so far are all enlisted, and where none is created."""

    bundle: str
    epoch: Epoch
    migration: str
    wave: int
    """The last wave that had begun when its owner listed its topics."""


class TopicCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The argument of one run of the topic script."""

    broker: str
    session: str
    """The session of the asking process; a text, because Lua would round the number."""
    changes: tuple[TopicChange, ...] = ()
    named: tuple[Named, ...] = ()


class TopicRefused(StrEnum):
    """Why a topic was not changed."""

    UNKNOWN_MIGRATION = "unknown-migration"
    """There is none of that id, or it cannot be read."""
    NO_LEASE = "no-lease"
    """The asking process does not hold the broker's lease."""
    NOT_OWNER = "not-owner"
    """The broker does not serve the bundle by this epoch: another owner goes on."""
    STALE_STATE = "stale-state"
    """The topic has another state than expected: read it again, then decide again."""
    OTHER_MIGRATION = "other-migration"
    """The topic is part of another migration."""
    ILLEGAL = "illegal-transition"
    """The table has no such row."""
    NOT_NOW = "not-now"
    """The migration is not in a state, or the wave has not begun, in which this may happen."""
    FULL = "full"
    """No more topics of the namespace may begin on the other cluster."""


class TopicOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The script's answer to one change: the record that stands now, and why it was refused."""

    topic: str
    reason: TopicRefused | None = None
    record: TopicRecord | None = None

    @property
    def accepted(self) -> bool:
        return self.reason is None
