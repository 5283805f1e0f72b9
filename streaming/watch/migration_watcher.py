"""Tells the job how far migrations have come: what owners have counted in Redis.

each look, for each cluster that is open to this job and each of its migrations that is under way:
  add up its topics by wave, and the bundles whose owner has not named their topics
  publish both as an intent, if anything follows from them
It decides by nothing that it could not read again, so a new driver goes on with the next look. What
follows from the counts is decided by `trimtab.migration.progress`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from typing import Final, Protocol

import structlog

from sinks.errors import SinkError
from sinks.exposition import Exposition
from streaming.metrics.migrations import MigrationGauges
from trimtab.migration.life import CLAIMING, UNDER_WAY
from trimtab.migration.migration import Counts, Migration
from trimtab.migration.progress import advance

log = structlog.get_logger()

PAUSE_SECONDS: Final = 2.0
"""Shorter: an intent for every few topics; longer: a wave's end, or a gate, is noticed late."""


class Store(Protocol):
    """`sinks.redis.migrations.Migrations`; raises SinkError."""

    def read(self, cluster: str) -> dict[str, Migration]: ...

    def counts(self, cluster: str, migration: str) -> dict[str, Counts]: ...

    def unnamed(self, migration: Migration) -> int: ...


class Opened(Protocol):
    """The clusters that this job has opened."""

    @property
    def clusters(self) -> Set[str]: ...


class Publisher(Protocol):
    """`streaming.watch.intent_publisher.IntentPublisher`."""

    def migration(
        self, cluster: str, migration: Migration, counts: tuple[Counts, ...], unseen: int
    ) -> None: ...


class MigrationWatcher:
    """Watches the migrations; one thread calls ``look``."""

    def __init__(  # noqa: PLR0913 - what it reads, where it tells, and two clocks
        self,
        store: Store,
        opened: Opened,
        publisher: Publisher,
        shown: Exposition,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._opened, self._publisher = store, opened, publisher
        self._gauges = MigrationGauges(shown, clock, wall)
        self._trouble = ""

    def look(self) -> None:
        """Publish what is new; an absent Redis or Kafka is asked again at the next look."""
        trouble = ""
        try:
            for cluster in sorted(self._opened.clusters):
                self._look(cluster)
        except SinkError as error:
            trouble = str(error)
        if trouble and trouble != self._trouble:
            log.warning("the progress of migrations is unknown", cause=trouble)
        self._trouble = trouble

    def _look(self, cluster: str) -> None:
        found = self._store.read(cluster)
        counts = dict[str, tuple[Counts, ...]]()
        for name, migration in found.items():
            # What a rollback has left on green is shown as long as something is.
            if migration.state in CLAIMING or migration.total.stays:
                counts[name] = self._counts(migration)
            if migration.state in UNDER_WAY:
                counts[name] = self._tell(migration, counts[name])
        self._gauges.show(cluster, found.values(), counts)

    def _tell(self, migration: Migration, counts: tuple[Counts, ...]) -> tuple[Counts, ...]:
        """Publish what follows from the counts, or from those read again, which are returned."""
        unseen, last = 0, migration.seen
        furthest = advance(migration, counts, 0, last)
        steps = (furthest.state, furthest.wave) != (migration.state, migration.wave)
        if migration.unseen or steps:
            # It reads the names of all bundles: only while some are unnamed, and before a step.
            unseen = self._store.unnamed(migration)
            # After it: an owner enlists topics, then names the bundle. Counts that were read
            # earlier would lack topics of a bundle that is named by now.
            counts = self._counts(migration)
        if advance(migration, counts, unseen, last) != migration:
            self._publisher.migration(migration.cluster, migration, counts, unseen)
        return counts

    def _counts(self, migration: Migration) -> tuple[Counts, ...]:
        return by_wave(migration, self._store.counts(migration.cluster, migration.id))


def by_wave(migration: Migration, counts: Mapping[str, Counts]) -> tuple[Counts, ...]:
    """The counts of each wave, in order."""
    return tuple(counts.get(str(wave), Counts()) for wave in range(migration.last_wave + 1))
