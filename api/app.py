"""Builds the application: its paths, the role that each needs, errors and the audit log."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from api.access import allow
from api.audit_log import INTENT_HEADER, AuditLog
from api.context import Context
from api.metrics import exposed, noting
from api.page.live import Watch, own_live
from api.page.overview import own_overview
from api.page.serving import page
from api.pulsar.anti_affinity import groups, members
from api.pulsar.broker_stats import broker_stats
from api.pulsar.brokers import brokers
from api.pulsar.bundles import bundles
from api.pulsar.clusters import clusters
from api.pulsar.isolation import isolation
from api.pulsar.lookup import lookup
from api.pulsar.namespaces import namespaces
from api.pulsar.topics import topics
from api.rate_limit import RateLimit
from api.refusal import RESPONSES, handle_errors
from api.tokens import LOCAL, Caller, Role, Tokens
from api.trimtab.brokers import own_brokers
from api.trimtab.bundles import own_bundles
from api.trimtab.caller import own_caller
from api.trimtab.clusters import own_clusters
from api.trimtab.controls import own_modes, own_pins
from api.trimtab.explaining import own_explaining
from api.trimtab.migrations import own_migrations
from api.trimtab.namespaces import own_namespaces
from api.trimtab.plans import own_plans
from api.trimtab.policies import own_groups, own_policies
from api.trimtab.rounds import own_rounds
from api.trimtab.settings import own_settings
from api.trimtab.sizing import own_sizing
from api.trimtab.topics import own_topics
from sinks.exposition import Exposition
from trimtab.metrics import api as metrics

_ADMIN_PATHS: Final = "/admin/v2"
"""Prefix of Pulsar's admin paths."""
_PULSAR_ROUTERS: Final = (
    (brokers, Role.ADMIN),
    (broker_stats, Role.ADMIN),
    (isolation, Role.ADMIN),
    (clusters, Role.ADMIN),
    (groups, Role.OPERATOR),
    (namespaces, Role.OPERATOR),
    (bundles, Role.OPERATOR),
    (members, Role.OPERATOR),
    (topics, Role.OPERATOR),
)
"""Pulsar's admin paths, each with the role that its changes need; a viewer may read."""
_OWN_PATHS: Final = "/trimtab/v1"
"""Prefix of trimtab's own paths."""
_OWN_ROUTERS: Final = (
    (own_caller, Role.VIEWER),
    (own_live, Role.VIEWER),
    (own_overview, Role.VIEWER),
    (own_clusters, Role.OPERATOR),
    (own_brokers, Role.OPERATOR),
    (own_bundles, Role.OPERATOR),
    (own_namespaces, Role.OPERATOR),
    (own_groups, Role.OPERATOR),
    (own_policies, Role.ADMIN),
    (own_plans, Role.OPERATOR),
    (own_migrations, Role.ADMIN),
    (own_pins, Role.OPERATOR),
    (own_modes, Role.ADMIN),
    (own_rounds, Role.OPERATOR),
    (own_settings, Role.ADMIN),
    (own_topics, Role.OPERATOR),
    (own_explaining, Role.OPERATOR),
    (own_sizing, Role.VIEWER),
)
"""trimtab's own paths, the same way."""
MOST_CHANGES: Final = 600.0
"""Changes a minute of one caller. Lower: scripts wait; higher: one caller can crowd out the rest.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may send requests, how often, and where they are logged."""

    tokens: Tokens | None = None
    """None: every caller may do everything."""
    log: AuditLog = field(default_factory=lambda: AuditLog(None))
    limit: RateLimit = field(default_factory=lambda: RateLimit(MOST_CHANGES, time.monotonic))
    local: Caller = LOCAL
    """Every caller, where there are no tokens."""


def create_app(context: Context, access: Access | None = None) -> FastAPI:
    """Make the application; closing the control plane of ``context`` is up to the caller."""
    access = access or Access()
    app = FastAPI(
        title="trimtab",
        summary="Pulsar's admin paths for what trimtab decides, and trimtab's own.",
        version="1",
        responses=RESPONSES,
    )
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    app.state.context, app.state.limit = context, access.limit
    app.state.tokens, app.state.local = access.tokens, access.local
    app.state.watch = Watch(context.plane)
    handle_errors(app)
    for router, changes in _PULSAR_ROUTERS:
        app.include_router(router, prefix=_ADMIN_PATHS, dependencies=[allow(changes)])
    # Pulsar's own client asks for groups without the version.
    app.include_router(groups, prefix="/admin", dependencies=[allow(Role.OPERATOR)])
    # It only reads: a viewer is enough.
    app.include_router(lookup, prefix="/lookup/v2/topic", dependencies=[allow(Role.OPERATOR)])
    for router, changes in _OWN_ROUTERS:
        app.include_router(router, prefix=_OWN_PATHS, dependencies=[allow(changes)])
    # Without a token: the page asks for it, and has nothing but what these paths answer.
    app.include_router(page)
    shown = Exposition(metrics.METRICS)
    app.include_router(exposed(shown), dependencies=[allow(Role.OPERATOR)])

    @app.middleware("http")
    async def note(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        with noting(shown, request) as noted:
            response = await answer(request)
            noted.status = response.status_code
        if intents := getattr(request.state, "intents", None):
            response.headers[INTENT_HEADER] = ",".join(each.id for each in intents)
        access.log.note(request, response)
        return response

    return app


def _describe(app: FastAPI) -> dict[str, Any]:
    """The description of all paths, without FastAPI's own answer to what it cannot read: that is
    answered as in Pulsar, by 400."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for methods in told["paths"].values():
            for operation in methods.values():
                operation["responses"].pop("422", None)
        app.openapi_schema = told
    return app.openapi_schema
