"""/admin/v2/namespaces: namespaces and the edges of their bundles (Pulsar Namespaces)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from api.context import InContext
from api.pulsar.bundles import standing_records
from api.refusal import RefusedRequest
from control.intents import Objections
from trimtab.cluster.intents.flaws import MOST_BUNDLES
from trimtab.intent_rules import IntentRule
from trimtab.migration.kept import Migrations
from trimtab.model import FULL_RANGE_END, parse_bundle
from trimtab.store.ring import equal_edges
from trimtab.wire.intent import IntentKind

namespaces = APIRouter(prefix="/namespaces", tags=["namespaces"])

_ABSENT = "Namespace does not exist"

DEFAULT_BUNDLES: Final = 4
"""Pulsar's defaultNumberOfNamespaceBundles."""


class NewBundles(BaseModel):
    """How a namespace is cut: by edges that begin and end the ring, or evenly (BundlesData)."""

    boundaries: list[str] = []
    numBundles: int = 0


class NewPolicies(BaseModel):
    """What is read of Pulsar's Policies where a namespace is created."""

    bundles: NewBundles | None = None


@namespaces.get("/{tenant}")
def list_namespaces(tenant: str, context: InContext) -> list[str]:
    """The namespaces of a tenant that have a bundle; 404 if there is none."""
    cluster = context.cluster().newest.cluster
    found = [n for n in context.plane.index.namespaces(cluster) if n.startswith(f"{tenant}/")]
    if not found:
        raise RefusedRequest(404, "Tenant not found")
    return found


@namespaces.get("/{tenant}/{name}")
def get_policies(tenant: str, name: str, context: InContext) -> dict[str, Any]:
    """What trimtab knows of Pulsar's Policies: the bundles and the anti-affinity group."""
    namespace = f"{tenant}/{name}"
    last, memory = context.memory()
    items = context.plane.migrations.read(last.newest.cluster).values()
    found = {
        "replication_clusters": [last.newest.cluster],
        "bundles": get_bundles(tenant, name, context),
        "migrated": Migrations(items=tuple(items)).flagged(namespace) is not None,
    }
    group = memory.policies.groups.get(namespace)
    return found if group is None else {**found, "antiAffinityGroup": group}


@namespaces.put("/{tenant}/{name}", status_code=204)
def create_namespace(
    tenant: str, name: str, context: InContext, policies: NewPolicies | None = None
) -> Response:
    """Create a namespace with its bundles, each with a broker; 409 if it has some already."""
    positions = _cuts((policies or NewPolicies()).bundles)
    try:
        context.tell(IntentKind.NAMESPACE, name=f"{tenant}/{name}", positions=positions)
    except Objections as error:
        if error.flaws[0][0] is IntentRule.NAMESPACE_EXISTS:
            rule = IntentRule.NAMESPACE_EXISTS
            raise RefusedRequest(409, "Namespace already exists", rule) from None
        raise
    return Response(status_code=204)


@namespaces.delete("/{tenant}/{name}")
def delete_namespace(tenant: str, name: str, context: InContext) -> Response:
    """Not done here: 404 if there is no such namespace, else 405."""
    standing_records(context, f"{tenant}/{name}", f"Namespace {tenant}/{name} does not exist.")
    reason = f"{tenant}/{name}: bundles end where brokers keep them; trimtab deletes none"
    raise RefusedRequest(405, reason)


@namespaces.get("/{tenant}/{name}/bundles")
def get_bundles(tenant: str, name: str, context: InContext) -> dict[str, Any]:
    """The edges of a namespace's bundles on the hash ring; 404 if it has none."""
    records = standing_records(context, f"{tenant}/{name}", _ABSENT)
    lows = sorted(parse_bundle(bundle)[1].low for bundle in records)
    edges = [f"0x{edge:08x}" for edge in (*lows, FULL_RANGE_END)]
    return {"boundaries": edges, "numBundles": len(lows)}


@namespaces.put("/{tenant}/{name}/unload", status_code=204)
def unload_namespace(tenant: str, name: str, context: InContext) -> Response:
    """Take all bundles of a namespace off their brokers, and wait until others serve them."""
    records = standing_records(context, f"{tenant}/{name}")
    if any(record.owner is not None for record in records.values()):
        context.tell(IntentKind.UNLOAD, name=f"{tenant}/{name}")
    return Response(status_code=204)


@namespaces.post("/{tenant}/{name}/migration", status_code=204)
def set_migration(
    tenant: str, name: str, migrated: Annotated[bool, Body()], context: InContext
) -> Response:
    """Take a namespace to where its cluster's topics go, or back; 412 if the cluster has no URL for
    that, where Pulsar's flag has no effect."""
    standing_records(context, f"{tenant}/{name}", _ABSENT)
    context.tell(IntentKind.NAMESPACE_MIGRATION, name=f"{tenant}/{name}", migrated=migrated)
    return Response(status_code=204)


@namespaces.get("/{tenant}/{name}/replication")
def get_replication(tenant: str, name: str, context: InContext) -> JSONResponse:
    """The clusters of a namespace: the one that these paths are about."""
    standing_records(context, f"{tenant}/{name}", _ABSENT)
    return JSONResponse([context.cluster().newest.cluster])


def _cuts(wanted: NewBundles | None) -> tuple[int, ...]:
    """Where the ring is cut; raises RefusedRequest (400) if the edges do not cover it."""
    if wanted is None or not wanted.boundaries:
        number = DEFAULT_BUNDLES if wanted is None else wanted.numBundles or DEFAULT_BUNDLES
        if not 0 < number <= MOST_BUNDLES:
            reason = f"bundles.numBundles: must be 1 to {MOST_BUNDLES}, not {number}"
            raise RefusedRequest(400, reason)
        return tuple(equal_edges(number)[1:-1])
    try:
        edges = [int(edge, 16) for edge in wanted.boundaries]
    except ValueError:
        reason = "bundles.boundaries: must be hexadecimal numbers, as 0x40000000"
        raise RefusedRequest(400, reason) from None
    if len(edges) < 2 or (edges[0], edges[-1]) != (0, FULL_RANGE_END):
        reason = "bundles.boundaries: must begin with 0x00000000 and end with 0xffffffff"
        raise RefusedRequest(400, reason)
    return tuple(edges[1:-1])
