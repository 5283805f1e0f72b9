"""/trimtab/v1/clusters/{cluster}: what a page shows first of a cluster, in two answers."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from api.context import InContext
from api.trimtab.clusters import tell_status
from control.health import late_from, status_of
from control.heat_map import By, Part
from control.usage_history import KEPT
from trimtab.controls import Mode
from trimtab.policies import NO_POLICIES

own_overview = APIRouter(prefix="/clusters/{cluster}", tags=["clusters"])

_MOST_ROWS = 200


@own_overview.get("/overview")
def get_overview(cluster: str, context: InContext) -> dict[str, Any]:
    """A cluster's newest round without its brokers: figures (fractions), thresholds, hit counters,
    what waits and what holds it back."""
    last = context.plane.cluster(cluster)
    newest, regular, settings = last.newest, last.regular, last.settings()
    now_ms = time.time_ns() // 1_000_000
    policies = newest.policies or NO_POLICIES
    return {
        **tell_status(status_of(last, now_ms)),
        "late": now_ms > late_from(last, settings),
        "round": newest.round,
        "strategy": regular.strategy,
        "placement": regular.placement,
        "mode": Mode.OBSERVE if regular.observe_only else settings.plans.mode,
        "skipped": regular.skipped,
        "summary": regular.summary,
        "hits": {
            name: {"count": count, "limit": limit} for name, (count, limit) in regular.hits.items()
        },
        "thresholds": {
            "target": settings.planner.target,
            "overloaded": settings.round.overloaded_threshold,
            "intervalSeconds": settings.round.interval,
        },
        "unserved": newest.unserved,
        "unservedSince": newest.unserved_since,
        "quarantined": newest.quarantined,
        "doubt": newest.doubt,
        "frozenUntil": newest.frozen_until,
        "refused": regular.refused,
        "obstacles": regular.obstacles,
        "held": 0 if regular.held is None else regular.held.changes,
        "waiting": list(last.waiting),
        "failureDomains": len(set(policies.domains.values())),
        "shadow": msgspec.to_builtins(regular.shadow),
    }


@own_overview.get("/heat-map")
def get_heat_map(  # noqa: PLR0913 - a path and its query
    cluster: str,
    context: InContext,
    by: By = By.AUTO,
    domain: Annotated[
        str | None, Query(description="Only its brokers; empty: those without one.")
    ] = None,
    match: Annotated[str, Query(description="A part of the name of brokers.")] = "",
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 50,
    rounds: Annotated[int, Query(ge=1, le=KEPT)] = 60,
) -> Response:
    """The usage (fractions) of brokers, or of the busiest broker of each failure domain, in the
    last rounds, the oldest first; rows the busiest first. ``next`` is the ``after`` of the next
    page."""
    last = context.plane.cluster(cluster)
    found = context.plane.heat_map(last, Part(by, domain, match, after, limit, rounds))
    told = {"round": last.newest.round, "at": last.newest.at, **found._asdict()}
    # Thousands of numbers, which FastAPI would look at one by one.
    return Response(msgspec.json.encode(told), media_type="application/json")


@own_overview.get("/resources")
def get_resources(
    cluster: str,
    context: InContext,
    broker: Annotated[list[str], Query(min_length=1, max_length=_MOST_ROWS)],
) -> dict[str, dict[str, float]]:
    """What each resource adds to the usage of these brokers (fractions, times its weight), by the
    newest load reports; the highest is the usage. Brokers whose report is not known yet are left
    out: following reports begins with the first request."""
    return context.plane.resources(context.plane.cluster(cluster), broker)
