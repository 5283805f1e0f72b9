"""Shows how far clusters' migrations have come, and which of them come no further."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from sinks.exposition import Exposition
from trimtab.metrics import job as metrics
from trimtab.migration.life import CLAIMING, MigrationState
from trimtab.migration.migration import Counts, Migration, sum_up
from trimtab.migration.progress import Mark, mark_of

_MOVING: Final = frozenset({MigrationState.RUNNING, MigrationState.ROLLING_BACK})


class MigrationGauges:
    """Gauges of one driver; remembers when each migration last made progress."""

    def __init__(
        self, shown: Exposition, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        """``clock``: seconds that never go back; ``wall``: since the epoch."""
        self._shown, self._clock, self._wall = shown, clock, wall
        self._since: dict[tuple[str, str], tuple[Mark, float]] = {}

    def show(
        self,
        cluster: str,
        migrations: Collection[Migration],
        counts: Mapping[str, tuple[Counts, ...]],
    ) -> None:
        """Set every gauge of a cluster, to 0 too: one that is absent looks like a job that is.
        ``counts``: of each migration's waves, by its id."""
        shown, total = self._shown, sum_up(*(_of(each, counts) for each in migrations))
        states = Counter(each.state for each in migrations)
        for state in sorted(CLAIMING):
            shown.set(metrics.MIGRATIONS, states[state], cluster, state.value)
        for name in ("active", "replicating", "terminated", "draining", "migrated", "stays"):
            shown.set(metrics.MIGRATING_TOPICS, getattr(total, name), cluster, name)
        shown.set(metrics.MIGRATION_BACKLOG, total.backlog, cluster)
        shown.set(metrics.MIGRATION_STEPS, total.attempts - total.errors, cluster, "done")
        shown.set(metrics.MIGRATION_STEPS, total.errors, cluster, "failed")
        stopped = [m for m in migrations if m.state is MigrationState.PAUSED and m.stopped]
        shown.set(metrics.MIGRATIONS_STOPPED, len(stopped), cluster)
        moving = [each for each in migrations if each.state in _MOVING]
        shown.set(metrics.MIGRATION_IDLE, self._idle(cluster, moving, counts), cluster)

    def _idle(
        self,
        cluster: str,
        moving: Collection[Migration],
        counts: Mapping[str, tuple[Counts, ...]],
    ) -> float:
        """Seconds since the one that has stood still for longest has gone on; 0 without any."""
        now, before = self._clock(), self._since
        self._since = {key: said for key, said in before.items() if key[0] != cluster}
        for each in moving:
            key = cluster, each.id
            mark, known = mark_of(each, sum_up(*counts.get(each.id, ()))), before.get(key)
            if known is None and mark == mark_of(each, each.total):
                known = mark, now - self._idle_before(each)
            self._since[key] = known if known and known[0] == mark else (mark, now)
        return max((now - self._since[cluster, each.id][1] for each in moving), default=0.0)

    def _idle_before(self, migration: Migration) -> float:
        """Seconds for which it stood still under the driver before."""
        return max(0.0, self._wall() - migration.moved / 1000) if migration.moved else 0.0


def _of(migration: Migration, counts: Mapping[str, tuple[Counts, ...]]) -> Counts:
    """What is shown of a migration's topics; of one that was rolled back, those alone that stay on
    green."""
    found = sum_up(*counts.get(migration.id, ()))
    if migration.state in CLAIMING:
        return found
    return replace(found, active=0, attempts=0, errors=0)
