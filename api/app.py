"""The API as one application: its paths, who may ask them, and how it answers errors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from fastapi import FastAPI, Request, Response

from api.access import Role, Tokens, allow
from api.audit_log import INTENT_HEADER, AuditLog
from api.desk import Desk
from api.pulsar.brokers import brokers
from api.pulsar.clusters import clusters
from api.pulsar.isolation import isolation
from api.pulsar.lookup import lookup
from api.pulsar.namespaces import groups, namespaces
from api.pulsar.topics import topics
from api.rate_limit import RateLimit
from api.refusal import handle_errors
from api.trimtab.clusters import own_clusters

ADMIN: Final = "/admin/v2"
"""Where Pulsar's admin paths are."""
MOST_CHANGES: Final = 600.0
"""Changes a minute of one caller. Lower: scripts wait; higher: one caller can crowd out the rest.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask, how often, and where that is noted."""

    tokens: Tokens | None = None
    """None: everybody may do everything."""
    log: AuditLog = field(default_factory=lambda: AuditLog(None))
    limit: RateLimit = field(default_factory=lambda: RateLimit(MOST_CHANGES, time.monotonic))


def create_app(desk: Desk, access: Access | None = None) -> FastAPI:
    """The application; it closes nothing that the desk holds."""
    access = access or Access()
    app = FastAPI(
        title="trimtab",
        summary="Pulsar's admin paths for what trimtab decides, and trimtab's own.",
        version="1",
    )
    app.state.desk, app.state.tokens, app.state.limit = desk, access.tokens, access.limit
    handle_errors(app)
    for router, changes in (
        (brokers, Role.ADMIN),
        (isolation, Role.ADMIN),
        (clusters, Role.ADMIN),
        (groups, Role.OPERATOR),
        (namespaces, Role.OPERATOR),
        (topics, Role.OPERATOR),
    ):
        app.include_router(router, prefix=ADMIN, dependencies=[allow(changes)])
    # Pulsar's own client asks for groups without the version.
    app.include_router(groups, prefix="/admin", dependencies=[allow(Role.OPERATOR)])
    viewers = [allow(Role.OPERATOR)]
    app.include_router(lookup, prefix="/lookup/v2/topic", dependencies=viewers)
    app.include_router(own_clusters, prefix="/trimtab/v1", dependencies=viewers)

    @app.middleware("http")
    async def note(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        if intents := getattr(request.state, "intents", None):
            response.headers[INTENT_HEADER] = ",".join(intents)
        access.log.note(request, response)
        return response

    return app
