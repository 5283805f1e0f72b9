"""/trimtab/v1/clusters/{cluster}: what the rounds see, decided, and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query

from api.context import InContext
from api.refusal import RefusedRequest
from trimtab.nearby import nearby
from trimtab.wire.rounds import RoundRecord

own_explaining = APIRouter(prefix="/clusters/{cluster}", tags=["rounds"])


@own_explaining.get("/view")
def get_view(cluster: str, context: InContext) -> dict[str, Any]:
    """What the newest round saw: the usage of brokers (fractions), doubts, policies."""
    last = context.plane.cluster(cluster)
    newest = last.newest
    return {
        "cluster": cluster,
        "round": newest.round,
        "at": newest.at,
        "usage": newest.usage,
        "summary": last.regular.summary,
        "unserved": newest.unserved,
        "doubt": newest.doubt,
        "causes": newest.causes,
        "policies": msgspec.to_builtins(context.plane.memory(last).policies),
        "problems": list(newest.problems),
    }


@own_explaining.get("/decisions")
def list_decisions(
    cluster: str,
    context: InContext,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    refusals: bool = True,
) -> list[dict[str, Any]]:
    """What the last rounds decided on bundles, the newest first: moves, splits, merges, repairs,
    and unless they are left out refusals with their rule."""
    found: list[dict[str, Any]] = []
    for held in context.plane.rounds(cluster):
        left = max(0, limit - len(found))
        found += islice(_decisions(held, refusals=refusals), left)
        if len(found) >= limit:
            break
    return found


@own_explaining.get("/why")
def get_why(
    cluster: str,
    subject: Annotated[str, Query(min_length=1, description="A bundle or a broker.")],
    context: InContext,
    round: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> dict[str, Any]:
    """Why a bundle moved or stayed in a round, or what a broker gave and got; without a round, in
    the newest one that explains it. 404 if the last rounds explain nothing of it."""
    found = context.plane.explanation(cluster, subject, round)
    if found.explanation is None:
        context.plane.cluster(cluster)
        near = nearby(subject, context.plane.explained(cluster))
        where = "the last rounds explain" if round is None else f"round {round} explains"
        raise RefusedRequest(404, f"{where} nothing of {subject}; {near}")
    return {
        "explanation": msgspec.to_builtins(found.explanation),
        "rounds": found.rounds,
        "kept": found.kept,
    }


@own_explaining.get("/history")
def get_history(
    cluster: str,
    subject: Annotated[str, Query(min_length=1, description="A bundle or a broker.")],
    context: InContext,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[dict[str, Any]]:
    """What the last hundred rounds did with a bundle or broker, the newest first."""
    rounds = context.plane.explanation(cluster, subject).rounds
    if not rounds:
        context.plane.cluster(cluster)
    told = (context.plane.explanation(cluster, subject, number) for number in rounds[:limit])
    return [
        {
            "round": each.round,
            "at": each.at,
            "verdict": each.verdict,
            "rule": each.rule,
            "source": each.source,
            "destination": each.destination,
            "why": each.why,
        }
        for found in told
        if (each := found.explanation) is not None
    ]


def _decisions(held: RoundRecord, *, refusals: bool) -> Iterator[dict[str, Any]]:
    begun = {"round": held.round, "at": held.at}
    for kind, part in (
        ("move", held.moves),
        ("split", held.splits),
        ("merge", held.merges),
        ("repair", held.repairs),
        ("refusal", held.refusals if refusals else ()),
    ):
        for each in part:
            yield {**begun, "decision": kind, **msgspec.to_builtins(each)}
