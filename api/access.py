"""Who may send a request: its token, role, tenants and the rate limit.

Without tokens everybody is an administrator, which `trimtab api` allows on loopback only.
"""

from __future__ import annotations

import math
from typing import Any, Final

from fastapi import Depends, Request

from api.rate_limit import RateLimit
from api.refusal import RefusedRequest
from api.tokens import Caller, Role, Tokens

_CHANGING: Final = frozenset({"POST", "PUT", "DELETE", "PATCH"})


def allow(changes: Role) -> Any:
    """A router's dependency: viewers may ask, callers of the role ``changes`` may change."""

    def check(request: Request) -> Caller:
        caller = _authenticate(request)
        request.state.caller = caller
        needed = changes if request.method in _CHANGING else Role.VIEWER
        if caller.role < needed:
            reason = (
                f"{caller.name} is {caller.role.name.lower()}; this takes {needed.name.lower()}"
            )
            raise RefusedRequest(403, reason)
        if request.method in _CHANGING:
            _bound(request, caller)
        tenant = request.path_params.get("tenant", "")
        if caller.tenants is not None and tenant not in caller.tenants:
            open_to = ", ".join(sorted(caller.tenants)) or "no tenant"
            raise RefusedRequest(403, f"{caller.name} may only ask about {open_to}")
        return caller

    return Depends(check)


def _authenticate(request: Request) -> Caller:
    tokens: Tokens | None = request.app.state.tokens
    if tokens is None:
        origin = request.headers.get("origin", "")
        if request.method in _CHANGING and origin.rpartition("://")[2] not in ("", _host(request)):
            # A page of another site, open in a browser here.
            raise RefusedRequest(403, f"{origin} is another site")
        local: Caller = request.app.state.local
        return local
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    caller = tokens.caller_of(token.strip()) if scheme.lower() == "bearer" else None
    if caller is None:
        reason = "give a token that is in force: Authorization: Bearer TOKEN"
        raise RefusedRequest(401, reason, headers={"WWW-Authenticate": "Bearer"})
    return caller


def _bound(request: Request, caller: Caller) -> None:
    limit: RateLimit = request.app.state.limit
    if wait_s := limit.wait_s(caller.name):
        reason = f"{caller.name} changes more than {limit.per_minute:g} things a minute"
        raise RefusedRequest(429, reason, headers={"Retry-After": str(math.ceil(wait_s))})


def _host(request: Request) -> str:
    return request.headers.get("host", "")
