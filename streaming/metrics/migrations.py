"""Shows how far a cluster's migrations have come."""

from __future__ import annotations

from collections.abc import Mapping

from sinks.exposition import Exposition
from trimtab.metrics import job as metrics
from trimtab.migration.life import CLAIMING, MigrationState
from trimtab.migration.migration import Counts


def show_migrations(
    shown: Exposition, cluster: str, states: Mapping[MigrationState, int], total: Counts
) -> None:
    """Set every gauge, to 0 too: one that is absent looks like a job that is."""
    for state in sorted(CLAIMING):
        shown.set(metrics.MIGRATIONS, states.get(state, 0), cluster, state.value)
    for name in ("active", "replicating", "terminated", "draining", "migrated", "stays"):
        shown.set(metrics.MIGRATING_TOPICS, getattr(total, name), cluster, name)
    shown.set(metrics.MIGRATION_BACKLOG, total.backlog, cluster)
    shown.set(metrics.MIGRATION_STEPS, total.attempts - total.errors, cluster, "done")
    shown.set(metrics.MIGRATION_STEPS, total.errors, cluster, "failed")
