"""/trimtab/v1/clusters/{cluster}/rounds: what rounds decided, as trimtab.rounds records them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from api.context import InContext
from api.refusal import RefusedRequest
from control.rounds import summarize

own_rounds = APIRouter(prefix="/clusters/{cluster}/rounds", tags=["rounds"])


@own_rounds.get("")
def list_rounds(
    cluster: str, context: InContext, limit: Annotated[int, Query(ge=1, le=1_000)] = 20
) -> list[dict[str, Any]]:
    """The last rounds that are in memory, the newest first."""
    return [summarize(each) for each in context.plane.rounds(cluster)[:limit]]


@own_rounds.get("/{number}")
def get_round(cluster: str, number: str, context: InContext) -> Response:
    """The record of a round, as on trimtab.rounds (docs/wire.md): its number, or ``newest``."""
    held = context.plane.rounds(cluster)
    by_number = {str(each.round): each for each in held} | {"newest": held[0]}
    if number not in by_number:
        oldest = f"there are {held[-1].round} to {held[0].round}"
        raise RefusedRequest(404, f"round {number}: not one of the last; {oldest}, and newest")
    return Response(msgspec.json.encode(by_number[number]), media_type="application/json")
