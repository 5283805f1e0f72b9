"""/admin/v2/namespaces: bundles and their moves and splits, anti-affinity (Pulsar Namespaces)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel

from api.desk import AtDesk, Desk
from api.pulsar.bundle_choice import choose_bundle
from api.pulsar.clusters import require_cluster
from api.refusal import RefusedRequest
from control.intents import Objections
from trimtab.cluster.flaws import MOST_BUNDLES
from trimtab.model import FULL_RANGE_END, InvalidName, parse_bundle
from trimtab.ownership import State
from trimtab.reasons import IntentRule
from trimtab.store.ring import equal_edges
from trimtab.wire.control import IntentKind
from trimtab.wire.ownership import Record

namespaces = APIRouter(prefix="/namespaces", tags=["namespaces"])
groups = APIRouter(prefix="/namespaces", tags=["namespaces"])
"""Pulsar's Java client asks for these under another prefix, too."""

_ABSENT = "Namespace does not exist"

DEFAULT_BUNDLES: Final = 4
"""Pulsar's defaultNumberOfNamespaceBundles."""


async def _read_body(request: Request) -> bytes:
    # Pulsar's clients send plain text and call it JSON.
    return await request.body()


_Text = Annotated[bytes, Depends(_read_body)]


class NewBundles(BaseModel):
    """How a namespace is cut: by edges that begin and end the ring, or evenly (BundlesData)."""

    boundaries: list[str] = []
    numBundles: int = 0


class NewPolicies(BaseModel):
    """What is read of Pulsar's Policies where a namespace is created."""

    bundles: NewBundles | None = None


@groups.get("/{cluster}/antiAffinity/{group}")
def list_group(
    cluster: str, group: str, desk: AtDesk, tenant: str = "", property: str = ""
) -> list[str]:
    """The namespaces of a tenant (``property`` in Pulsar's Java client) that an anti-affinity group
    holds and that have a bundle; 412 without a tenant."""
    require_cluster(desk, cluster)
    of = tenant or property
    if not of:
        raise RefusedRequest(412, "Tenant should not be null")
    policies = desk.plane.memory(desk.plane.cluster(cluster)).policies
    return sorted(
        name
        for name in policies.groups
        if policies.group_of(name) == group.lower()
        and name.startswith(f"{of}/")
        and desk.plane.index.bundles(cluster, name)
    )


@namespaces.get("/{tenant}")
def list_namespaces(tenant: str, desk: AtDesk) -> list[str]:
    """The namespaces of a tenant that have a bundle; 404 if there is none."""
    cluster = desk.cluster().newest.cluster
    found = [n for n in desk.plane.index.namespaces(cluster) if n.startswith(f"{tenant}/")]
    if not found:
        raise RefusedRequest(404, "Tenant not found")
    return found


@namespaces.get("/{tenant}/{name}")
def get_policies(tenant: str, name: str, desk: AtDesk) -> dict[str, Any]:
    """What trimtab knows of Pulsar's Policies: the bundles and the anti-affinity group."""
    namespace = f"{tenant}/{name}"
    last, memory = desk.memory()
    found = {
        "replication_clusters": [last.newest.cluster],
        "bundles": get_bundles(tenant, name, desk),
    }
    group = memory.policies.groups.get(namespace)
    return found if group is None else {**found, "antiAffinityGroup": group}


@namespaces.put("/{tenant}/{name}", status_code=204)
def create_namespace(
    tenant: str, name: str, desk: AtDesk, policies: NewPolicies | None = None
) -> Response:
    """Create a namespace with its bundles, each with a broker; 409 if it has some already."""
    positions = _cuts((policies or NewPolicies()).bundles)
    try:
        desk.tell(IntentKind.NAMESPACE, name=f"{tenant}/{name}", positions=positions)
    except Objections as error:
        if error.flaws[0][0] is IntentRule.NAMESPACE_EXISTS:
            rule = IntentRule.NAMESPACE_EXISTS
            raise RefusedRequest(409, "Namespace already exists", rule) from None
        raise
    return Response(status_code=204)


@namespaces.delete("/{tenant}/{name}")
def delete_namespace(tenant: str, name: str, desk: AtDesk) -> Response:
    """Not done here: 404 if there is no such namespace, else 405."""
    _records(desk, f"{tenant}/{name}", f"Namespace {tenant}/{name} does not exist.")
    reason = f"{tenant}/{name}: bundles end where brokers keep them; trimtab deletes none"
    raise RefusedRequest(405, reason)


@namespaces.get("/{tenant}/{name}/bundles")
def get_bundles(tenant: str, name: str, desk: AtDesk) -> dict[str, Any]:
    """The edges of a namespace's bundles on the hash ring; 404 if it has none."""
    records = _records(desk, f"{tenant}/{name}", _ABSENT)
    lows = sorted(parse_bundle(bundle)[1].low for bundle in records)
    edges = [f"0x{edge:08x}" for edge in (*lows, FULL_RANGE_END)]
    return {"boundaries": edges, "numBundles": len(lows)}


@namespaces.put("/{tenant}/{name}/unload", status_code=204)
def unload_namespace(tenant: str, name: str, desk: AtDesk) -> Response:
    """Take all bundles of a namespace off their brokers, and wait until others serve them."""
    records = _records(desk, f"{tenant}/{name}")
    if any(record.owner is not None for record in records.values()):
        desk.tell(IntentKind.UNLOAD, name=f"{tenant}/{name}")
    return Response(status_code=204)


@namespaces.put("/{tenant}/{name}/{bundle}/unload", status_code=204)
def unload_bundle(  # noqa: PLR0913 - a path and its query
    tenant: str,
    name: str,
    bundle: str,
    desk: AtDesk,
    destinationBroker: str = "",
    authoritative: bool = False,
) -> Response:
    """Take a bundle off its broker, to ``destinationBroker`` if given, and wait until it is served.
    Nothing happens to a bundle that no broker has."""
    del authoritative  # Pulsar's redirects; there is one job.
    to = destinationBroker.rpartition("://")[2]
    if to and to not in desk.cluster().newest.usage:
        reason = "Not allowed unload namespace bundle to inactive destination broker"
        raise RefusedRequest(409, reason)
    found, record = _bundle(desk, f"{tenant}/{name}", bundle)
    if record.owner is not None:
        if record.owner == to:
            reason = f"Namespace bundle: {found} own by {to}, cannot be transfer to same broker."
            raise RefusedRequest(409, reason)
        desk.tell(IntentKind.UNLOAD, bundle=found, broker=to)
    return Response(status_code=204)


@namespaces.put("/{tenant}/{name}/{bundle}/split", status_code=204)
def split_bundle(  # noqa: PLR0913 - a path and its query
    tenant: str,
    name: str,
    bundle: str,
    desk: AtDesk,
    splitAlgorithmName: str = "",
    unload: bool = False,
    authoritative: bool = False,
    positions: Annotated[list[int] | None, Body()] = None,
) -> Response:
    """Split a bundle, or the LARGEST (most topics) or HOT one (most traffic) of the namespace, at
    ``positions`` or by the algorithm; 412 if it cannot be split so. With ``unload`` the children
    go to other brokers where rounds find it worth it: `split.unload_children`."""
    del authoritative, unload
    namespace = f"{tenant}/{name}"
    if bundle in ("LARGEST", "HOT"):
        records = _records(desk, namespace)
        found = choose_bundle(desk, records, largest=bundle == "LARGEST")
        if found is None:
            raise RefusedRequest(404, f"Bundle range {bundle} not found")
    else:
        found, _ = _bundle(desk, namespace, bundle)
    desk.tell(
        IntentKind.SPLIT,
        bundle=found,
        algorithm=splitAlgorithmName,
        positions=tuple(positions or ()),
    )
    return Response(status_code=204)


@namespaces.get("/{tenant}/{name}/antiAffinity")
def get_group(tenant: str, name: str, desk: AtDesk) -> Response:
    """The anti-affinity group of a namespace; 204 if it is in none."""
    _, memory = desk.memory()
    group = memory.policies.groups.get(f"{tenant}/{name}")
    if group is None:
        return Response(status_code=204)
    return PlainTextResponse(group, media_type="application/json")


@namespaces.post("/{tenant}/{name}/antiAffinity", status_code=204)
def set_group(tenant: str, name: str, group: _Text, desk: AtDesk) -> Response:
    """Put a namespace into an anti-affinity group: plain text or a JSON string; 412 if blank."""
    text = group.decode(errors="replace").strip().strip('"').strip()
    if not text:
        raise RefusedRequest(412, "antiAffinityGroup can't be empty")
    desk.tell(IntentKind.ANTI_AFFINITY, name=f"{tenant}/{name}", group=text)
    return Response(status_code=204)


@namespaces.delete("/{tenant}/{name}/antiAffinity", status_code=204)
def delete_group(tenant: str, name: str, desk: AtDesk) -> Response:
    """Take a namespace out of its anti-affinity group; nothing happens if it is in none."""
    _, memory = desk.memory()
    if f"{tenant}/{name}" in memory.policies.groups:
        desk.tell(IntentKind.ANTI_AFFINITY, name=f"{tenant}/{name}")
    return Response(status_code=204)


@namespaces.get("/{tenant}/{name}/replication")
def get_replication(tenant: str, name: str, desk: AtDesk) -> JSONResponse:
    """The clusters of a namespace: the one that these paths are about."""
    _records(desk, f"{tenant}/{name}", _ABSENT)
    return JSONResponse([desk.cluster().newest.cluster])


def _records(desk: Desk, namespace: str, absent: str = "Namespace not found") -> dict[str, Record]:
    """The records of a namespace's standing bundles; raises RefusedRequest (404) if it has none."""
    found = desk.plane.records(desk.cluster().newest.cluster, namespace)
    standing = {name: each for name, each in found.items() if each.state is not State.DELETED}
    if not standing:
        raise RefusedRequest(404, absent)
    return standing


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


def _bundle(desk: Desk, namespace: str, text: str) -> tuple[str, Record]:
    """A bundle by its range, in either case of letters, and its record; raises RefusedRequest if
    the range is not one of the namespace's bundles, as Pulsar does."""
    records = _records(desk, namespace)
    name = f"{namespace}/{text.lower()}"
    try:
        low, _ = parse_bundle(name)[1]
    except InvalidName:
        raise RefusedRequest(412, f"Invalid bundle range: {text}") from None
    if name not in records:
        raise RefusedRequest(412, _expected(name, low, records))
    return name, records[name]


def _expected(name: str, low: int, records: Iterable[str]) -> str:
    """Which bundle begins where the named one does, in Pulsar's words."""
    for other in records:
        if parse_bundle(other)[1].low == low:
            return f"Invalid upper boundary for bundle {name}. Expected upper boundary of {other}"
    return f"Invalid lower boundary for bundle {name}"
