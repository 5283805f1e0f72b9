"""/trimtab/v1/clusters/{cluster}/bundles: who owns what, and moves, splits and readmissions."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import MOST_LISTED, Change, HowToChange
from control.listing import Wanted
from trimtab.nearby import nearby
from trimtab.ownership import State
from trimtab.wire.intent import IntentKind

own_bundles = APIRouter(prefix="/clusters/{cluster}/bundles", tags=["bundles"])

_ONE: Final = "/{tenant}/{namespace}/{bundle}"


class Split(BaseModel, extra="forbid"):
    """How to split: at positions on the ring, or by an algorithm; without both as is set."""

    positions: list[int] = Field(default=[], max_length=1_000)
    algorithm: str = ""


@own_bundles.get("")
def list_bundles(  # noqa: PLR0913 - a path and its query
    cluster: str,
    context: InContext,
    broker: str = "",
    namespace: str = "",
    state: State | None = None,
    unserved: bool = False,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> dict[str, Any]:
    """Bundles by name, as the store has them; ``next`` is the ``after`` of the next page."""
    wanted = Wanted(broker, namespace, state, unserved)
    found, more = context.plane.bundles(cluster, wanted, after, limit)
    if not found and (absent := context.plane.find_absence(cluster, wanted)):
        raise RefusedRequest(404, absent)
    rows = [row._asdict() for row in found]
    return {"bundles": rows, "next": found[-1].bundle if more else None}


@own_bundles.get(_ONE)
def describe_bundle(
    cluster: str, tenant: str, namespace: str, bundle: str, context: InContext
) -> dict[str, Any]:
    """One bundle's record, its group, and what the last round that named it did with it."""
    last, name = context.plane.cluster(cluster), f"{tenant}/{namespace}/{bundle}"
    row = context.plane.bundle(cluster, name)
    if row is None:
        known = context.plane.records(cluster, f"{tenant}/{namespace}")
        near = nearby(name, known or context.plane.index.namespaces(cluster))
        raise RefusedRequest(404, f"{name}: no such bundle; {near}")
    group = context.plane.memory(last).policies.groups.get(f"{tenant}/{namespace}")
    last_why = context.plane.explanation(cluster, name).explanation
    return {
        **row._asdict(),
        "antiAffinityGroup": group,
        "why": None if last_why is None else last_why.why,
    }


@own_bundles.post(_ONE + "/unload")
def unload(  # noqa: PLR0913 - a path and its query
    cluster: str, tenant: str, namespace: str, bundle: str, how: HowToChange, to: str = ""
) -> Change:
    """Take a bundle off its broker at once: to the broker ``to``, or where placement finds best."""
    name = f"{tenant}/{namespace}/{bundle}"
    return how.ask(IntentKind.UNLOAD, cluster, bundle=name, broker=to)


@own_bundles.post(_ONE + "/split")
def split(  # noqa: PLR0913 - a path and its body
    cluster: str,
    tenant: str,
    namespace: str,
    bundle: str,
    how: HowToChange,
    by: Split | None = None,
) -> Change:
    """Split a bundle in the next round."""
    by = by or Split()
    return how.ask(
        IntentKind.SPLIT,
        cluster,
        bundle=f"{tenant}/{namespace}/{bundle}",
        algorithm=by.algorithm,
        positions=tuple(by.positions),
    )


@own_bundles.post(_ONE + "/merge")
def merge(cluster: str, tenant: str, namespace: str, bundle: str, how: HowToChange) -> Change:
    """Merge a bundle with its neighbour above in the next round; one broker must have both."""
    return how.ask(IntentKind.MERGE, cluster, bundle=f"{tenant}/{namespace}/{bundle}")


@own_bundles.post(_ONE + "/readmit")
def readmit(cluster: str, tenant: str, namespace: str, bundle: str, how: HowToChange) -> Change:
    """End the quarantine of a bundle whose owners died one after another."""
    return how.ask(IntentKind.READMIT, cluster, bundle=f"{tenant}/{namespace}/{bundle}")
