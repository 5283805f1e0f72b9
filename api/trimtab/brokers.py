"""/trimtab/v1/clusters/{cluster}/brokers: who is there, and which of them are emptied."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import Change, HowToChange
from control.listing import Wanted
from trimtab.nearby import nearby
from trimtab.wire.control import IntentKind

own_brokers = APIRouter(prefix="/clusters/{cluster}/brokers", tags=["brokers"])

_SHOWN = 20
"""Bundles that a broker's description names; the list of bundles has them all."""


@own_brokers.get("")
def list_brokers(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """The brokers of the newest round, the busiest first; usage as fractions."""
    return [row._asdict() for row in context.plane.brokers(context.plane.cluster(cluster))]


@own_brokers.get("/{broker}")
def describe_broker(cluster: str, broker: str, context: InContext) -> dict[str, Any]:
    """One broker: its state, usage, failure domain and first bundles."""
    last = context.plane.cluster(cluster)
    rows = {row.broker: row for row in context.plane.brokers(last)}
    if broker not in rows:
        raise RefusedRequest(404, f"{broker}: no such broker lately; {nearby(broker, rows)}")
    owned, _ = context.plane.bundles(cluster, Wanted(broker=broker), "", _SHOWN)
    domains = context.plane.memory(last).policies.domains
    return {
        **rows[broker]._asdict(),
        "failureDomain": domains.get(broker),
        "round": last.newest.round,
        "owned": [each.bundle for each in owned],
    }


@own_brokers.post("/{broker}/drain")
def drain(cluster: str, broker: str, how: HowToChange) -> Change:
    """Take every bundle off a broker and give it none, for a shutdown or maintenance."""
    return how.ask(IntentKind.DRAIN, cluster, broker=broker)


@own_brokers.post("/{broker}/undrain")
def undrain(cluster: str, broker: str, how: HowToChange) -> Change:
    """Use a broker again."""
    return how.ask(IntentKind.UNDRAIN, cluster, broker=broker)
