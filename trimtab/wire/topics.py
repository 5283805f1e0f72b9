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
    """What keeps a topic on blue: a subscription with unread messages, or a region that lacks some
    of the topic's messages."""

    name: str
    """The subscription, or the cluster of the other region."""
    messages: int
    """Number of messages that it has not got yet."""


class TopicRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a topic has migrated; stored in the hash of its namespace."""

    state: TopicState
    migration: str
    """The id of the migration that the topic is part of."""
    wave: int = 0
    epoch: Epoch = NO_EPOCH
    """The epoch that the bundle's record had when this record was written."""
    backlog: int = 0
    """Unread messages on blue, once the topic is terminated."""
    subscription: str = ""
    """The subscription with the most unread messages, the first one of ``subscriptions``."""
    subscriptions: tuple[Waiting, ...] = ()
    """The subscriptions with unread messages, most first, at most five. They tell an operator what
    the topic waits for."""
    regions: tuple[Waiting, ...] = ()
    """The clusters of other regions that lack messages of the topic, most first, at most
    five. The topic's producers wait until those clusters have them."""
    more: int = 0
    """How many further subscriptions, or regions, are not named."""
    stays: bool = False
    """A rollback leaves the topic on green: it began there, or green has taken a write of it."""
    began: bool = False
    """The topic began on green; blue never had it."""
    back: bool = False
    """The topic was taken back from green, and is active again; its owner opens it."""
    lost: bool = False
    """The topic stays on green because blue had lost it when it was to be rolled back."""
    gone: str = ""
    """If the topic stays and green itself has migrated it further: the web service of the cluster
    to which green sent the topic's clients."""
    via: str = ""
    """The id of an earlier migration, if the topic's producers went to that one's green. The topic
    stayed there when the earlier migration was rolled back; now ``migration`` counts it."""
    problem: str = ""
    """Why the topic's last step failed; empty if it succeeded."""
    v: int = 1

    @property
    def led_by(self) -> str:
        """The id of the migration to whose green its clients are sent."""
        return self.via or self.migration


class TopicChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of the broker that owns ``bundle``: do ``event`` to ``topic`` if its state is
    ``expect``. Without an event the script only stores ``problem``, the backlog and what the topic
    waits for."""

    topic: str
    bundle: str
    position: int
    """The topic's position on the ring (`trimtab.store.ring.position`)."""
    epoch: Epoch
    """The epoch of the record by which the broker serves the bundle."""
    migration: str
    expect: TopicState
    event: TopicEvent | None = None
    wave: int = 0
    """The topic's wave; ENLIST and START_ON_GREEN store it."""
    backlog: int = 0
    subscription: str = ""
    """The subscription with the largest part of the backlog."""
    subscriptions: tuple[Waiting, ...] = ()
    """All subscriptions with a part of it, as many as a record names."""
    regions: tuple[Waiting, ...] = ()
    more: int = 0
    gone: str = ""
    """With STAY: the cluster to which green has sent the topic's clients; empty if it has not."""
    problem: str = ""
    """Why a step failed, in at most 300 characters."""


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that has all topics of the waves so far enlisted, and in which no topic is
    created."""

    bundle: str
    epoch: Epoch
    migration: str
    wave: int
    """The last wave that had begun when the owner listed the bundle's topics."""


class TopicCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The argument of one run of the topic script."""

    broker: str
    session: str
    """The session of the process that asks, as a string, because Lua would round the number."""
    changes: tuple[TopicChange, ...] = ()
    named: tuple[Named, ...] = ()


class TopicRefused(StrEnum):
    """Why a topic was not changed."""

    UNKNOWN_MIGRATION = "unknown-migration"
    """There is no migration of that id, or it cannot be read."""
    NO_LEASE = "no-lease"
    """The process that asks does not hold the broker's lease."""
    NOT_OWNER = "not-owner"
    """The broker does not serve the bundle by this epoch; another owner continues."""
    STALE_STATE = "stale-state"
    """The topic's state is not the expected one: read the record again, then decide again."""
    OTHER_MIGRATION = "other-migration"
    """The topic is part of another migration."""
    ILLEGAL = "illegal-transition"
    """The table has no row for this state and event."""
    NOT_NOW = "not-now"
    """The state of the migration does not allow this, or the topic's wave has not begun."""
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
