"""A migration: what goes where, in which waves, and how far it has come.

Replaced, never changed. In Redis and on Kafka it stands as JSON with these names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Final

from trimtab.migration.life import TRANSITIONS, MigrationEvent, MigrationState
from trimtab.migration.scopes import covers, overlap, scopes_of
from trimtab.migration.topic_life import LEFT, TopicState

RING: Final = 1 << 32
"""Hashes of topics are below it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Green's URLs, with the names of Pulsar's ``ClusterUrl``, which clients and REST know."""

    serviceUrl: str = ""
    """Green's web service: for lookups, and for all that brokers ask of green."""
    serviceUrlTls: str = ""
    brokerServiceUrl: str = ""
    """The address to which clients connect."""
    brokerServiceUrlTls: str = ""

    @property
    def web(self) -> str:
        """The web service to ask; with TLS if there is one."""
        return self.serviceUrlTls or self.serviceUrl

    def urls(self) -> dict[str, str]:
        """The URLs that are set, by name."""
        names = ("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Wave:
    """Topics that go together: the topics of the scopes whose hash is below ``share`` of 2^32.

    The hash is CRC-32 of the name without a partition's number, times 2,654,435,769, modulo 2^32.
    """

    scopes: tuple[str, ...]
    share: float = 1.0
    """For example 0.05: a twentieth of the topics, as a first try."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold before the next wave begins."""

    backlog: int = 0
    """How many unread messages the topics of the waves so far may have at most. High: green's
    consumers wait for blue's; low: one slow consumer stops all waves."""
    errors: float = 0.05
    """Largest share of steps that may fail. Above it the migration pauses, also within a wave."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Topics of one wave, or of one namespace, by state, and what they have left to do."""

    active: int = 0
    replicating: int = 0
    terminated: int = 0
    draining: int = 0
    migrated: int = 0
    stays: int = 0
    """Topics, in any state, that a rollback leaves on green."""
    backlog: int = 0
    """Unread messages of terminated topics on blue."""
    attempts: int = 0
    """Steps that were tried."""
    errors: int = 0
    """Steps that failed."""
    began: int = 0
    """How many of ``stays`` began on green. The others have writes there, or may have: green has
    taken some, or has sent the topic to another cluster, or blue has lost the topic."""

    @property
    def left(self) -> int:
        """Topics that are still on blue."""
        return sum(getattr(self, state.value) for state in LEFT)

    @property
    def begun(self) -> int:
        """Topics on their way or there: what a rollback has to judge."""
        return self.left - self.active + self.migrated

    @property
    def topics(self) -> int:
        return self.left + self.migrated

    def of(self, state: TopicState) -> int:
        """How many are in a state."""
        found: int = getattr(self, state.value)
        return found

    def numbers(self) -> tuple[int, ...]:
        """All counts, in the order of the members."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(*map(add, self.numbers(), other.numbers()))


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration. Times are batch timestamps (epoch ms)."""

    id: str
    cluster: str
    scope: str
    target: Target
    state: MigrationState = MigrationState.RUNNING
    waves: tuple[Wave, ...] = ()
    """In order. The topics of the scope that are in no wave follow as the last wave."""
    apart: tuple[str, ...] = ()
    """Scopes within the scope that had migrated before this migration began. They stay where they
    are, and their topics do not belong to this migration."""
    gate: Gate = Gate()
    check: float = 1.0
    """Seconds after which an owner checks a topic again; 0: owners take no steps."""
    wave: int = 0
    """The last wave that has begun, from 0."""
    counts: tuple[Counts, ...] = ()
    """The newest counts, by wave."""
    seen: int = 0
    """When the newest counts were read."""
    moved: int = 0
    """When the migration last made progress; 0: not known."""
    unseen: int = 0
    """Bundles of the scope whose owners have not named their topics."""
    before: tuple[int, int] = (0, 0)
    """Attempts and errors that the gate ignores: those of earlier waves, or before a resume."""
    why: str = ""
    """Why the migration is paused, or why the next wave waits."""
    stopped: bool = False
    """Whether the gate has paused the migration, and not a person."""
    at: int = 0
    """When the migration began."""
    ended: int = 0
    by: str = ""
    reason: str = ""
    alone: bool = False
    """Whether a person has given green up: a rollback then serves topics here again without asking
    green."""
    v: int = 1

    def after(self, event: MigrationEvent, **changes: Any) -> Migration:
        """The migration after a legal event."""
        return replace(self, state=TRANSITIONS[self.state][event], **changes)

    def has(self, topic: str) -> bool:
        """Whether a topic migrates by it."""
        return covers(self.scope, topic) and not self._leaves(topic)

    def touches(self, scope: str) -> bool:
        """Whether some topic of a scope can migrate by it."""
        return overlap(self.scope, scope) and not self._leaves(scope)

    def _leaves(self, scope: str) -> bool:
        # Asked for each topic of a bundle: without a walk through `covers`.
        return bool(self.apart) and not set(scopes_of(scope)).isdisjoint(self.apart)

    @property
    def last_wave(self) -> int:
        """The number of the wave of all that is in no other."""
        return len(self.waves)

    @property
    def total(self) -> Counts:
        """All waves together."""
        return sum_up(*self.counts)


def sum_up(*counts: Counts) -> Counts:
    """All counts together."""
    return reduce(Counts.plus, counts, Counts())
