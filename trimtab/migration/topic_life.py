"""What may become of one topic that migrates, as one table: docs/migration.md draws it.

Three rules for edits to this file. Every legal change of a topic's record is a row of TRANSITIONS,
because the Lua script gets this same table. No row leads to a state in which both blue and green
accept writes: from TERMINATED on, blue accepts none. And no row leads back to ACTIVE unless green
has taken no write of the topic, and can take none any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from trimtab.migration.life import MigrationState


class TopicState(StrEnum):
    """How far a topic has come."""

    UNKNOWN = "unknown"
    """The topic has no record: the owner of its bundle has not named it, or users deleted it."""
    ACTIVE = "active"
    """Blue serves the topic as before."""
    REPLICATING = "replicating"
    """Producers must try again later, until everything on blue is replicated to other regions."""
    TERMINATED = "terminated"
    """Blue accepts no more writes. Producers are redirected to green; consumers stay."""
    DRAINING = "draining"
    """Consumers of drained subscriptions are redirected; another subscription still has a
    backlog."""
    MIGRATED = "migrated"
    """Nothing of the topic is left on blue, and it is not created there again."""


class TopicEvent(StrEnum):
    """What the owner of a topic's bundle has done."""

    ENLIST = "enlist"
    """Named a topic of the scope."""
    FORGET = "forget"
    """Found that users have deleted it before it was terminated."""
    HOLD = "hold"
    """Told its producers to try again, as other regions lack messages of it."""
    TERMINATE = "terminate"
    """Created its resources on green, then ended its writes."""
    DRAIN = "drain"
    """Redirected the consumers that are done; a backlog is left."""
    FINISH = "finish"
    """Redirected the last consumer, and deleted it."""
    REOPEN = "reopen"
    """Took it back from green, which had taken no write of it."""
    START_ON_GREEN = "start-on-green"
    """Sent the client that asked for a new topic to green, where the topic is created. Only green
    has it, and a rollback leaves it there."""
    STAY = "stay"
    """Found that green has taken a write of it: it still goes to green, even if the rest
    returns."""
    LOSE = "lose"
    """Found that blue has lost it, so that nothing can come back: green keeps it."""


class Given(StrEnum):
    """A further condition of an event."""

    NOTHING = "nothing"
    OPEN_WAVE = "open-wave"
    """The migration runs, and the topic's wave has begun."""
    ONWARD = "onward"
    """The migration is not rolled back, or the topic stays on green."""
    ROLLING_BACK = "rolling-back"
    """The migration is being rolled back, or was, and the topic does not stay on green."""
    NEW = "new"
    """The topic is not enlisted in this migration, which is under way."""
    STAYED = "stayed"
    """The topic stays on green because of an earlier migration, which was rolled back. The new
    migration is under way."""
    TAKES_NEW = "takes-new"
    """The migration is completed; or it is not rolled back and the topic's wave has begun."""


class Effect(NamedTuple):
    """The effect of one event on a topic."""

    state: TopicState
    given: Given = Given.NOTHING
    stays: bool = False
    """Whether the topic stays on green from now on, if the migration is rolled back."""


_S, _E = TopicState, TopicEvent

_BACK: Final = MappingProxyType({_E.REOPEN: Effect(_S.ACTIVE, Given.ROLLING_BACK)})


def _judged(state: TopicState) -> dict[TopicEvent, Effect]:
    """What a rollback may make of a topic that green may have taken a write of."""
    return {
        **_BACK,
        _E.STAY: Effect(state, Given.ROLLING_BACK, stays=True),
        _E.LOSE: Effect(_S.MIGRATED, Given.ROLLING_BACK, stays=True),
    }


def _drains_for_a_later(state: TopicState) -> dict[TopicEvent, Effect]:
    """A later migration of its scope is not complete before it has left blue: it drains, to the
    green that has its producers."""
    return {_E.ENLIST: Effect(state, Given.STAYED, stays=True)}


TRANSITIONS: Final[Mapping[TopicState, Mapping[TopicEvent, Effect]]] = MappingProxyType(
    {
        _S.UNKNOWN: MappingProxyType(
            {
                _E.ENLIST: Effect(_S.ACTIVE, Given.NEW),
                _E.START_ON_GREEN: Effect(_S.MIGRATED, Given.TAKES_NEW, stays=True),
            }
        ),
        _S.ACTIVE: MappingProxyType(
            {
                _E.ENLIST: Effect(_S.ACTIVE, Given.NEW),
                _E.FORGET: Effect(_S.UNKNOWN),
                _E.HOLD: Effect(_S.REPLICATING, Given.OPEN_WAVE),
                _E.TERMINATE: Effect(_S.TERMINATED, Given.OPEN_WAVE),
            }
        ),
        _S.REPLICATING: MappingProxyType(
            {
                _E.FORGET: Effect(_S.UNKNOWN),
                _E.TERMINATE: Effect(_S.TERMINATED, Given.ONWARD),
                **_BACK,
            }
        ),
        _S.TERMINATED: MappingProxyType(
            {
                _E.DRAIN: Effect(_S.DRAINING, Given.ONWARD),
                _E.FINISH: Effect(_S.MIGRATED, Given.ONWARD),
                **_judged(_S.TERMINATED),
                **_drains_for_a_later(_S.TERMINATED),
            }
        ),
        _S.DRAINING: MappingProxyType(
            {
                _E.DRAIN: Effect(_S.DRAINING, Given.ONWARD),
                _E.FINISH: Effect(_S.MIGRATED, Given.ONWARD),
                **_judged(_S.DRAINING),
                **_drains_for_a_later(_S.DRAINING),
            }
        ),
        _S.MIGRATED: MappingProxyType(_judged(_S.MIGRATED)),
    }
)
"""The state of a topic after each event; all others are refused."""

MAY_ENLIST: Final = frozenset({MigrationState.RUNNING, MigrationState.PAUSED})
"""States of a migration in which topics are enlisted (Given.NEW)."""
MAKING: Final = frozenset({TopicEvent.ENLIST, TopicEvent.START_ON_GREEN})
"""Events that make a record of the migration that they name; all others change one that is there.
"""
COUNTED: Final = frozenset(TopicEvent) - MAKING - {TopicEvent.FORGET}
"""Events that count as a step tried; the others only look."""
MOST_NEW: Final = 20_000
"""Topics of a namespace that one migration may create on green. More: clients that invent names
fill Redis (300 bytes a name), and the memory of the bundles' owners; fewer: a migration that is
completed for long, and whose clients still ask blue, has no more new topics."""
FORGETTABLE: Final = frozenset({_S.ACTIVE, _S.REPLICATING})
"""States whose topic is forgotten once its users have deleted it."""
REDIRECTING: Final = frozenset({_S.TERMINATED, _S.DRAINING, _S.MIGRATED})
"""States in which producers are sent to green."""
DRAINS: Final = frozenset({_S.TERMINATED, _S.DRAINING})
"""States in which blue has still something for subscriptions to read."""
LEFT: Final = frozenset({_S.ACTIVE, _S.REPLICATING, _S.TERMINATED, _S.DRAINING})
"""States of topics that are still on blue."""


def allows(state: TopicState, event: TopicEvent) -> bool:
    """Whether ``event`` may happen to a topic in ``state``, if its condition holds."""
    return event in TRANSITIONS[state]
