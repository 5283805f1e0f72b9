"""/trimtab/v1/clusters/{cluster}: the fleet with more or fewer brokers, on its present load."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import Context, InContext
from api.refusal import RefusedRequest
from control.demand import SPARE, find_peak, needed_brokers
from control.rounds import ClusterRounds
from control.what_if import Changed, Impossible

own_sizing = APIRouter(prefix="/clusters/{cluster}", tags=["sizing"])

_MOST_ADDED = 1_000
_MOST_DAYS = 31.0


class WhatIf(BaseModel, extra="forbid"):
    """How the fleet is to differ: brokers to add, to remove and to drain."""

    add: int = Field(default=0, ge=0, le=_MOST_ADDED)
    like: str = Field(default="", description="A broker with the hardware of the added ones.")
    remove: list[str] = []
    drain: list[str] = []


@own_sizing.post("/what-if")
def try_out(cluster: str, change: WhatIf, context: InContext) -> dict[str, Any]:
    """What rounds would do with another fleet, and the usage of its brokers afterwards (fractions).
    Nothing is changed."""
    without = frozenset((*change.remove, *change.drain))
    changed = Changed(change.add, change.like, without)
    return _try(context, context.plane.cluster(cluster), changed)


@own_sizing.get("/advise")
def advise(
    cluster: str,
    context: InContext,
    days: Annotated[float, Query(gt=0, le=_MOST_DAYS)] = 7.0,
) -> dict[str, Any]:
    """How many brokers the largest load of the last days takes, so that one may be lost and the
    rest stays below round.overloaded_threshold; and what the fleet would look like with them."""
    last = context.plane.cluster(cluster)
    peak = find_peak(context.plane.demand(cluster, days))
    if peak is None:
        raise RefusedRequest(404, f"no round of {cluster} in {days:g} days recorded usage")
    threshold = last.settings().round.overloaded_threshold
    wanted, present = needed_brokers(peak, threshold), len(last.newest.usage)
    idlest = sorted(last.newest.usage, key=lambda broker: (last.newest.usage[broker], broker))
    surplus = frozenset(idlest[: max(0, present - wanted)])
    changed = Changed(add=min(_MOST_ADDED, max(0, wanted - present)), without=surplus)
    return {
        "peak": {**peak._asdict(), "load": peak.whole},
        "threshold": threshold,
        "spare": SPARE,
        "brokers": present,
        "wanted": wanted,
        "remove": sorted(surplus),
        "whatIf": _try(context, last, changed),
    }


def _try(context: Context, last: ClusterRounds, changed: Changed) -> dict[str, Any]:
    try:
        outlook: dict[str, Any] = msgspec.to_builtins(context.plane.fleet(last).try_out(changed))
    except Impossible as error:
        raise RefusedRequest(412, str(error)) from None
    return outlook
