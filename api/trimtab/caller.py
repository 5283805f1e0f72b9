"""/trimtab/v1/caller: who asks, so that a page offers only what would not be refused."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from api.tokens import Caller

own_caller = APIRouter(prefix="/caller", tags=["clusters"])


@own_caller.get("")
def get_caller(request: Request) -> dict[str, Any]:
    """The name and role of the token, and whether tokens are asked for at all."""
    caller: Caller = request.state.caller
    return {
        "name": caller.name,
        "role": caller.role.name.lower(),
        "tokens": request.app.state.tokens is not None,
    }
