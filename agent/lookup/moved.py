"""Finds where a topic went that has migrated: nothing of it is left here.

A topic that is terminated or drains is still looked up here: its owner knows which clients it sends
away, producers at once and consumers once their subscription is drained. So is a new one: its owner
has it recorded before it sends clients away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from sinks.redis.topics import TopicStore
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.migration.scopes import is_system
from trimtab.migration.topic_life import TopicState

FRESH_S: Final = 1.0
"""How long the migrations are believed. Shorter: a read for each lookup; longer: clients are sent
to a broker that sends them on."""


class MovedTopics:
    """Any number of threads may use it. Raises StoreUnavailable and Misconfigured."""

    def __init__(self, cluster: str, store: TopicStore, clock: Callable[[], float]) -> None:
        self._cluster, self._store, self._clock = cluster, store, clock
        self._migrations: Mapping[str, Migration] = {}
        self._until = -math.inf

    def find(self, topic: str, namespace: str) -> Target | None:
        """Green's URLs if the topic is there; one more read only while something has migrated."""
        now = self._clock()
        if now >= self._until:
            self._migrations = self._store.migrations(self._cluster)
            self._until = now + FRESH_S
        known = self._migrations
        if not known or is_system(topic):
            return None
        record = self._store.named(self._cluster, namespace, [topic]).get(topic)
        if record is None or record.state is not TopicState.MIGRATED:
            return None
        migration = known.get(record.led_by)
        return None if migration is None else migration.target

    def taken_over(self, topic: str) -> Target | None:
        """Green's URLs if a topic of a namespace that is not here can only be there.

        No owner could have it recorded. It is not created here either, after a rollback, while the
        namespace is not.
        """
        done = (m for m in self._migrations.values() if m.state is MigrationState.COMPLETED)
        return next((m.target for m in done if not is_system(topic) and m.has(topic)), None)
