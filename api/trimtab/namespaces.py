"""/trimtab/v1/clusters/{cluster}/namespaces: namespaces that have bundles."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import InContext
from api.trimtab.changes import MOST_LISTED, Change, HowToChange
from trimtab.cluster.intents.flaws import MOST_BUNDLES
from trimtab.store.ring import equal_edges
from trimtab.wire.control import IntentKind

own_namespaces = APIRouter(prefix="/clusters/{cluster}/namespaces", tags=["namespaces"])


class NewNamespace(BaseModel):
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
