"""/trimtab/v1/clusters/{cluster}/namespaces: namespaces that have bundles."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import MOST_LISTED, Change, HowToChange
from trimtab.cluster.intents.flaws import MOST_BUNDLES
from trimtab.nearby import nearby
from trimtab.ownership import State
from trimtab.state.hand_overs import budget_of
from trimtab.store.ring import equal_edges
from trimtab.wire.intent import IntentKind

own_namespaces = APIRouter(prefix="/clusters/{cluster}/namespaces", tags=["namespaces"])


class NewNamespace(BaseModel, extra="forbid"):
    """How a new namespace is cut."""

    bundles: Annotated[int, Field(ge=1, le=MOST_BUNDLES, description="Of equal ranges.")] = 4


@own_namespaces.get("")
def list_namespaces(
    cluster: str,
    context: InContext,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> dict[str, Any]:
    """The namespaces that have a bundle, by name; ``next`` is the ``after`` of the next page."""
    found = context.plane.index.namespaces(cluster, after, limit + 1)
    if not found:
        context.plane.cluster(cluster)
    shown = found[:limit]
    return {"namespaces": shown, "next": shown[-1] if len(found) > limit else None}


@own_namespaces.get("/{tenant}/{namespace}")
def describe_namespace(
    cluster: str, tenant: str, namespace: str, context: InContext
) -> dict[str, Any]:
    """One namespace: how many bundles it has, and at which brokers; what keeps them there."""
    last, name = context.plane.cluster(cluster), f"{tenant}/{namespace}"
    found = context.plane.records(cluster, name).values()
    owners = Counter(each.owner or "" for each in found if each.state is not State.DELETED)
    if not owners:
        near = nearby(name, context.plane.index.namespaces(cluster))
        raise RefusedRequest(404, f"{name}: no namespace that has bundles; {near}")
    memory, plans = context.plane.memory(last), last.settings().plans
    pin = memory.controls.pins.get(name)
    return {
        "namespace": name,
        "bundles": owners.total(),
        "unowned": owners.pop("", 0),
        "brokers": dict(owners.most_common()),
        "antiAffinityGroup": memory.policies.groups.get(name),
        "isolation": msgspec.to_builtins(memory.policies.isolation_of(name)),
        "mode": memory.controls.modes.get(name, plans.mode),
        "pin": msgspec.to_builtins(pin),
        "tenantMoves": budget_of(tenant, plans, memory.controls),
    }


@own_namespaces.put("/{tenant}/{namespace}")
def create(
    cluster: str, tenant: str, namespace: str, how: HowToChange, cut: NewNamespace | None = None
) -> Change:
    """Create a namespace, and give each of its bundles to a broker."""
    positions = tuple(equal_edges((cut or NewNamespace()).bundles)[1:-1])
    name = f"{tenant}/{namespace}"
    return how.ask(IntentKind.NAMESPACE, cluster, name=name, positions=positions)


@own_namespaces.post("/{tenant}/{namespace}/unload")
def unload(cluster: str, tenant: str, namespace: str, how: HowToChange, to: str = "") -> Change:
    """Take all bundles of a namespace off their brokers: to the broker ``to``, or where placement
    finds best."""
    return how.ask(IntentKind.UNLOAD, cluster, name=f"{tenant}/{namespace}", broker=to)
