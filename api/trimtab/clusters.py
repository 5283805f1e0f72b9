"""/trimtab/v1/clusters: how clusters are, their pause, and outcomes of intents."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import MOST_WAIT_S, Change, HowToChange
from control.health import Status, status_of
from trimtab.wire.intent import IntentKind

own_clusters = APIRouter(prefix="/clusters", tags=["clusters"])


@own_clusters.get("")
def list_statuses(context: InContext) -> list[dict[str, Any]]:
    """Every cluster: whether it is well, and what to do if not."""
    return [
        tell_status(status_of(last, _now_ms()))
        for _, last in sorted(context.plane.clusters().items())
    ]


@own_clusters.get("/{cluster}")
def get_status(cluster: str, context: InContext) -> dict[str, Any]:
    """Whether a cluster is well, and what to do if not."""
    return tell_status(status_of(context.plane.cluster(cluster), _now_ms()))


@own_clusters.post("/{cluster}/pause")
def pause(cluster: str, how: HowToChange) -> Change:
    """Stop all decisions, even repairs, until it is resumed."""
    return how.ask(IntentKind.PAUSE, cluster)


@own_clusters.post("/{cluster}/resume")
def resume(cluster: str, how: HowToChange) -> Change:
    """Decide again, also if the breaker is open because a plan made things worse."""
    return how.ask(IntentKind.RESUME, cluster)


@own_clusters.get("/{cluster}/outcomes/{intent:path}")
def get_outcome(
    cluster: str,
    intent: str,
    context: InContext,
    wait: Annotated[float, Query(ge=0, le=MOST_WAIT_S)] = 0.0,
) -> Response:
    """The outcome of an intent of the last day; with ``wait``, its final outcome if it comes within
    so many seconds. 404 if nothing is known of it."""
    found = context.plane.outcome(cluster, intent, min(wait, context.patience_s))
    if found is None:
        context.plane.cluster(cluster)
        raise RefusedRequest(404, f"{intent}: not read by a job yet, or more than a day ago")
    return Response(msgspec.json.encode(found), media_type="application/json")


def tell_status(status: Status) -> dict[str, Any]:
    """A status as these paths tell it."""
    findings = [msgspec.to_builtins(each) for each in status.findings]
    return {**status._asdict(), "findings": findings, "grade": status.grade or "well"}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
