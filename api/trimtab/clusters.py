"""/trimtab/v1/clusters: how clusters are, who is there, who owns what, and what became of it."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from api.context import InContext
from api.refusal import RefusedRequest
from control.health import Status, status_of
from control.listing import Wanted
from control.settings import explain_settings
from trimtab.ownership import State

own_clusters = APIRouter(prefix="/clusters", tags=["trimtab"])

_MOST: Final = 1_000
"""Bundles of a page: more would keep a request, and Redis, busy."""


@own_clusters.get("")
def list_statuses(context: InContext) -> list[dict[str, Any]]:
    """Every cluster: whether it is well, and what to do if not."""
    return [
        _status(status_of(last, _now_ms())) for _, last in sorted(context.plane.clusters().items())
    ]


@own_clusters.get("/{cluster}")
def get_status(cluster: str, context: InContext) -> dict[str, Any]:
    """Whether a cluster is well, and what to do if not."""
    return _status(status_of(context.plane.cluster(cluster), _now_ms()))


@own_clusters.get("/{cluster}/brokers")
def list_brokers(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """The brokers of the newest round, the busiest first; usage as fractions."""
    return [row._asdict() for row in context.plane.brokers(context.plane.cluster(cluster))]


@own_clusters.get("/{cluster}/bundles")
def list_bundles(  # noqa: PLR0913 - a path and its query
    cluster: str,
    context: InContext,
    broker: str = "",
    namespace: str = "",
    state: State | None = None,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
) -> dict[str, Any]:
    """Bundles by name, as the store has them; ``next`` is the ``after`` of the next page."""
    context.plane.cluster(cluster)
    found, more = context.plane.bundles(cluster, Wanted(broker, namespace, state), after, limit)
    rows = [row._asdict() for row in found]
    return {"bundles": rows, "next": found[-1].bundle if more else None}


@own_clusters.get("/{cluster}/rounds/newest")
def get_newest_round(cluster: str, context: InContext) -> Response:
    """The record of the newest round, as on trimtab.rounds (docs/wire.md)."""
    newest = context.plane.cluster(cluster).newest
    return Response(msgspec.json.encode(newest), media_type="application/json")


@own_clusters.get("/{cluster}/settings")
def list_settings(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """The settings in force, and where each comes from: default, file or intent."""
    last = context.plane.cluster(cluster)
    if last.started is None:
        reason = "trimtab.rounds no longer says what the job was started with"
        raise RefusedRequest(503, reason)
    found, _ = explain_settings(context.plane.memory(last).overrides, last.started)
    return [each._asdict() for each in found]


@own_clusters.get("/{cluster}/outcomes/{intent:path}")
def get_outcome(
    cluster: str, intent: str, context: InContext, wait: Annotated[float, Query(ge=0, le=60)] = 0.0
) -> Response:
    """What came of an intent of the last day; with ``wait``, its final outcome if it comes within
    so many seconds. 404 if nothing is known of it."""
    found = context.plane.outcome(cluster, intent, wait)
    if found is None:
        context.plane.cluster(cluster)
        raise RefusedRequest(404, f"{intent}: not read by a job yet, or more than a day ago")
    return Response(msgspec.json.encode(found), media_type="application/json")


def _status(status: Status) -> dict[str, Any]:
    findings = [msgspec.to_builtins(each) for each in status.findings]
    return {**status._asdict(), "findings": findings, "grade": status.grade or "well"}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
