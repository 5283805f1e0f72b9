"""/admin/v2/namespaces/.../antiAffinity: anti-affinity groups (Pulsar Namespaces)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from api.context import InContext
from api.pulsar.clusters import require_cluster
from api.refusal import RefusedRequest
from trimtab.wire.intent import IntentKind

groups = APIRouter(prefix="/namespaces", tags=["namespaces"])
"""Pulsar's Java client asks for these under another prefix, too."""
members = APIRouter(prefix="/namespaces", tags=["namespaces"])


async def _read_body(request: Request) -> bytes:
    # Pulsar's clients send plain text and call it JSON.
    return await request.body()


_Text = Annotated[bytes, Depends(_read_body)]


@groups.get("/{cluster}/antiAffinity/{group}")
def list_group(
    cluster: str, group: str, context: InContext, tenant: str = "", property: str = ""
) -> list[str]:
    """The namespaces of a tenant (``property`` in Pulsar's Java client) that an anti-affinity group
    holds and that have a bundle; 412 without a tenant."""
    require_cluster(context, cluster)
    of = tenant or property
    if not of:
        raise RefusedRequest(412, "Tenant should not be null")
    policies = context.plane.memory(context.plane.cluster(cluster)).policies
    return sorted(
        name
        for name in policies.groups
        if policies.group_of(name) == group.lower()
        and name.startswith(f"{of}/")
        and context.plane.index.bundles(cluster, name)
    )


@members.get("/{tenant}/{name}/antiAffinity", responses={204: {"description": "In none."}})
def get_group(tenant: str, name: str, context: InContext) -> Response:
    """The anti-affinity group of a namespace; 204 if it is in none."""
    _, memory = context.memory()
    group = memory.policies.groups.get(f"{tenant}/{name}")
    if group is None:
        return Response(status_code=204)
    return PlainTextResponse(group, media_type="application/json")


@members.post("/{tenant}/{name}/antiAffinity", status_code=204)
def set_group(tenant: str, name: str, group: _Text, context: InContext) -> Response:
    """Put a namespace into an anti-affinity group: plain text or a JSON string; 412 if blank."""
    text = group.decode(errors="replace").strip().strip('"').strip()
    if not text:
        raise RefusedRequest(412, "antiAffinityGroup can't be empty")
    context.tell(IntentKind.ANTI_AFFINITY, name=f"{tenant}/{name}", group=text)
    return Response(status_code=204)


@members.delete("/{tenant}/{name}/antiAffinity", status_code=204)
def delete_group(tenant: str, name: str, context: InContext) -> Response:
    """Take a namespace out of its anti-affinity group; nothing happens if it is in none."""
    _, memory = context.memory()
    if f"{tenant}/{name}" in memory.policies.groups:
        context.tell(IntentKind.ANTI_AFFINITY, name=f"{tenant}/{name}")
    return Response(status_code=204)
