"""/trimtab/v1/clusters/{cluster}/migrations: migrations of topics to another cluster."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import Context, InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import MOST_LISTED, Change, HowToChange
from control.migration.progress import Told, report, tell
from trimtab.migration.migration import Gate, Migration, Target, Wave
from trimtab.migration.scopes import CLUSTER
from trimtab.nearby import nearby
from trimtab.wire.intent import IntentKind

own_migrations = APIRouter(prefix="/clusters/{cluster}/migrations", tags=["migrations"])


class GreenUrls(BaseModel, extra="forbid"):
    """Where the other cluster listens (Pulsar ClusterUrl)."""

    serviceUrl: str = ""
    serviceUrlTls: str = ""
    brokerServiceUrl: str = ""
    brokerServiceUrlTls: str = ""

    def target(self) -> Target:
        return Target(**self.model_dump())


class NewWave(BaseModel, extra="forbid"):
    """Topics that go together."""

    scopes: list[str] = Field(max_length=1000)
    share: float = Field(1.0, description="Of them, by the hash of their names.")


class NewMigration(BaseModel, extra="forbid"):
    """What goes where, and how."""

    target: GreenUrls
    scope: str = Field(CLUSTER, description="`cluster`, a namespace, or a topic's whole name.")
    waves: list[NewWave] = Field([], max_length=100)
    backlog: int = Field(0, description="Most messages left on blue before the next wave begins.")
    errors: float = Field(0.05, description="Largest share of steps that may fail.")


@own_migrations.get("")
def list_migrations(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """Every migration that is remembered, the last begun first, with its progress."""
    found = context.plane.migrations.read(cluster)
    if not found:
        context.plane.cluster(cluster)
    return [msgspec.to_builtins(_tell(each, context)) for each in found.values()]


@own_migrations.post("")
def start(cluster: str, new: NewMigration, how: HowToChange) -> Change:
    """Begin a migration; checked before: URLs, scope, other migrations, and whether green answers.

    The migration has the id of this intent. A dry run only checks."""
    return how.ask(
        IntentKind.MIGRATION_START,
        cluster,
        scope=new.scope,
        target=new.target.target(),
        waves=tuple(Wave(tuple(each.scopes), each.share) for each in new.waves),
        gate=Gate(new.backlog, new.errors),
    )


@own_migrations.get("/{migration:path}/report")
def get_report(
    cluster: str,
    migration: str,
    context: InContext,
    limit: int = Query(100, ge=1, le=MOST_LISTED, description="Topics that are named at most."),
) -> dict[str, Any]:
    """The result of a migration: its progress by namespace, the topics that stay on green, those
    whose last step failed, with the reason, and those that it waits for."""
    told = _told(cluster, migration, context)
    found: dict[str, Any] = msgspec.to_builtins(report(told, context.plane.topics, limit))
    return found


@own_migrations.get("/{migration:path}")
def get_migration(cluster: str, migration: str, context: InContext) -> dict[str, Any]:
    """A migration with its progress: topics by state, by namespace too; what is left, and when the
    last will have gone at this pace."""
    found: dict[str, Any] = msgspec.to_builtins(_told(cluster, migration, context))
    return found


@own_migrations.post("/{migration:path}/pause")
def pause(cluster: str, migration: str, how: HowToChange) -> Change:
    """Start no further topic; topics that were terminated go on to green."""
    return how.ask(IntentKind.MIGRATION_PAUSE, cluster, migration=migration)


@own_migrations.post("/{migration:path}/resume")
def resume(cluster: str, migration: str, how: HowToChange) -> Change:
    """Go on; earlier failures no longer count for the gate."""
    return how.ask(IntentKind.MIGRATION_RESUME, cluster, migration=migration)


@own_migrations.post("/{migration:path}/rollback")
def roll_back(
    cluster: str,
    migration: str,
    how: HowToChange,
    without_green: bool = Query(
        False,
        alias="withoutGreen",
        description="Give green up: topics return without asking it. What it has taken of them is "
        "not here, and if it still runs both clusters take writes. Also while it is rolled back.",
    ),
) -> Change:
    """Bring back the topics that were not written on green; the others go on, and are named in
    the report."""
    kind = IntentKind.MIGRATION_ROLL_BACK
    return how.ask(kind, cluster, migration=migration, alone=without_green)


def _told(cluster: str, migration: str, context: InContext) -> Told:
    found = context.plane.migrations.read(cluster)
    if migration not in found:
        context.plane.cluster(cluster)
        reason = f"{migration}: no such migration; {nearby(migration, found)}"
        raise RefusedRequest(404, reason, "unknown-migration")
    return _tell(found[migration], context)


def _tell(migration: Migration, context: Context) -> Told:
    plane = context.plane
    return tell(migration, plane.migrations, time.time_ns() // 1_000_000, plane.waiting.find)
