"""/trimtab/v1/clusters/{cluster}/brokers: who is there, and which of them are emptied."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import MOST_LISTED, Change, HowToChange
from control.reports import busiest_bundles
from trimtab.nearby import nearby
from trimtab.wire.intent import IntentKind

own_brokers = APIRouter(prefix="/clusters/{cluster}/brokers", tags=["brokers"])

_SHOWN: Final = 10
"""Bundles that a broker's description names; the list of bundles has them all."""


@own_brokers.get("")
def list_brokers(
    cluster: str,
    context: InContext,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> dict[str, Any]:
    """The brokers of the newest round, the busiest first; usage as fractions. ``next`` is the
    ``after`` of the next page."""
    found = context.plane.brokers(context.plane.cluster(cluster), after, limit + 1)
    rows = [row._asdict() for row in found[:limit]]
    return {"brokers": rows, "next": rows[-1]["broker"] if len(found) > limit else None}


@own_brokers.get("/{broker}")
def describe_broker(cluster: str, broker: str, context: InContext) -> dict[str, Any]:
    """One broker: its state, usage and failure domain, its busiest bundles with their share of its
    traffic (fractions), and what the last round did with it."""
    last = context.plane.cluster(cluster)
    rows = {row.broker: row for row in context.plane.brokers(last)}
    if broker not in rows:
        raise RefusedRequest(404, f"{broker}: no such broker lately; {nearby(broker, rows)}")
    busiest = busiest_bundles(context.plane.report_values(last, [broker]))[:_SHOWN]
    why = context.plane.explanation(cluster, broker).explanation
    domains = context.plane.memory(last).policies.domains
    return {
        **rows[broker]._asdict(),
        "failureDomain": domains.get(broker),
        "round": last.newest.round,
        "busiest": [{"bundle": bundle, "share": share} for bundle, share in busiest],
        "rule": None if why is None else why.rule,
        "why": None if why is None else why.why,
    }


@own_brokers.post("/{broker}/drain")
def drain(cluster: str, broker: str, how: HowToChange) -> Change:
    """Take every bundle off a broker and give it none, for a shutdown or maintenance."""
    return how.ask(IntentKind.DRAIN, cluster, broker=broker)


@own_brokers.post("/{broker}/undrain")
def undrain(cluster: str, broker: str, how: HowToChange) -> Change:
    """Use a broker again."""
    return how.ask(IntentKind.UNDRAIN, cluster, broker=broker)
