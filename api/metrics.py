"""Counts requests, and serves the counts to Prometheus at /metrics: a viewer's token is enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.tokens import Caller
from sinks.exposition import Exposition
from trimtab.metrics import api as metrics
from trimtab.wire.intent import Intent

OTHER: Final = "other"
"""What is no path of the API, or no caller: their own words never become a label."""


@dataclass(slots=True)
class Noted:
    """What is known of a request when it is answered."""

    status: int = 500


@contextmanager
def noting(shown: Exposition, request: Request) -> Iterator[Noted]:
    """Count the request that the block answers, also if that fails."""
    began, noted = time.perf_counter(), Noted()
    try:
        yield noted
    finally:
        method, path = _place(request)
        caller: Caller | None = getattr(request.state, "caller", None)
        role = caller.role.name.lower() if caller else OTHER
        shown.count(metrics.REQUESTS, method, path, str(noted.status), role)
        shown.observe(metrics.REQUEST_SECONDS, time.perf_counter() - began, method, path)
        intents: list[Intent] = getattr(request.state, "intents", [])
        for intent in intents:
            shown.count(metrics.INTENTS, intent.kind.value)


def exposed(shown: Exposition) -> APIRouter:
    """The path that Prometheus scrapes."""
    router = APIRouter(tags=["trimtab"])

    @router.get("/metrics")
    def show_metrics() -> Response:
        """The API's own metrics (docs/metrics.md)."""
        return Response(shown.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def _place(request: Request) -> tuple[str, str]:
    """The method and the template of the path; both `OTHER` if no path took the request."""
    # The route itself knows only the part of its router.
    found = request.scope.get("fastapi", {}).get("effective_route_context")
    if found is None or request.method not in found.methods:
        return OTHER, OTHER
    return request.method, str(found.path)
