"""/admin/v2/namespaces/.../{bundle}: moves and splits of one bundle (Pulsar Namespaces)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Response

from api.context import Context, InContext
from api.refusal import RefusedRequest
from control.reports import readable
from trimtab.model import InvalidName, parse_bundle
from trimtab.ownership import State
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Record

bundles = APIRouter(prefix="/namespaces", tags=["namespaces"])


@bundles.put("/{tenant}/{name}/{bundle}/unload", status_code=204)
def unload_bundle(  # noqa: PLR0913 - a path and its query
    tenant: str,
    name: str,
    bundle: str,
    context: InContext,
    destinationBroker: str = "",
    authoritative: bool = False,
) -> Response:
    """Take a bundle off its broker, to ``destinationBroker`` if given, and wait until it is served.
    Nothing happens to a bundle that no broker has."""
    del authoritative  # Pulsar's redirects; there is one job.
    to = destinationBroker.rpartition("://")[2]
    if to and to not in context.cluster().newest.usage:
        reason = "Not allowed unload namespace bundle to inactive destination broker"
        raise RefusedRequest(409, reason)
    found, record = _bundle(context, f"{tenant}/{name}", bundle)
    if record.owner is not None:
        if record.owner == to:
            reason = f"Namespace bundle: {found} own by {to}, cannot be transfer to same broker."
            raise RefusedRequest(409, reason)
        context.tell(IntentKind.UNLOAD, bundle=found, broker=to)
    return Response(status_code=204)


@bundles.put("/{tenant}/{name}/{bundle}/split", status_code=204)
def split_bundle(  # noqa: PLR0913 - a path and its query
    tenant: str,
    name: str,
    bundle: str,
    context: InContext,
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
        records = standing_records(context, namespace)
        found = _choose(context, records, largest=bundle == "LARGEST")
        if found is None:
            raise RefusedRequest(404, f"Bundle range {bundle} not found")
    else:
        found, _ = _bundle(context, namespace, bundle)
    context.tell(
        IntentKind.SPLIT,
        bundle=found,
        algorithm=splitAlgorithmName,
        positions=tuple(positions or ()),
    )
    return Response(status_code=204)


def standing_records(
    context: Context, namespace: str, absent: str = "Namespace not found"
) -> dict[str, Record]:
    """The records of a namespace's standing bundles; raises RefusedRequest (404) if it has none."""
    found = context.plane.records(context.cluster().newest.cluster, namespace)
    standing = {name: each for name, each in found.items() if each.state is not State.DELETED}
    if not standing:
        raise RefusedRequest(404, absent)
    return standing


def _choose(context: Context, records: Mapping[str, Record], *, largest: bool) -> str | None:
    """The bundle with the most topics, or with the most bytes a second, by its owner's newest
    report; None if none has a topic."""
    owners = {record.owner for record in records.values() if record.owner}
    values = context.plane.report_values(context.cluster(), owners)
    found: dict[str, float] = {}
    for broker, report in readable(values):
        figures = report.counts[0] if largest else np.sum(report.stats[2:], axis=0)
        for row, bundle in enumerate(report.bundles):
            record = records.get(bundle)
            if record is not None and record.owner == broker and report.counts[0][row] > 0:
                found[bundle] = float(figures[row])
    return max(sorted(found), key=found.__getitem__, default=None)


def _bundle(context: Context, namespace: str, text: str) -> tuple[str, Record]:
    """A bundle by its range, in either case of letters, and its record; raises RefusedRequest if
    the range is not one of the namespace's bundles, as Pulsar does."""
    records = standing_records(context, namespace)
    name = f"{namespace}/{text.lower()}"
    try:
        low, _ = parse_bundle(name)[1]
    except InvalidName:
        raise RefusedRequest(412, f"Invalid bundle range: {text}") from None
    if name not in records:
        raise RefusedRequest(412, _expected(name, low, records))
    return name, records[name]


def _expected(name: str, low: int, records: Iterable[str]) -> str:
    """The bundle that begins where the named one does, in Pulsar's words."""
    for other in records:
        if parse_bundle(other)[1].low == low:
            return f"Invalid upper boundary for bundle {name}. Expected upper boundary of {other}"
    return f"Invalid lower boundary for bundle {name}"
