"""/lookup/v2/topic: which broker serves a topic, and which bundle holds it (Pulsar TopicLookup)."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from api.context import InContext
from api.refusal import RefusedRequest
from trimtab.migration.migration import Target
from trimtab.model import FULL_RANGE_END, parse_bundle
from trimtab.store.ring import bundle_at, position
from trimtab.wire.lookup import AnswerKind, Cause, ServiceUrls

lookup = APIRouter(tags=["lookup"])

Domain = Literal["persistent", "non-persistent"]


class LookupData(BaseModel):
    """Where a topic's broker listens (Pulsar LookupData)."""

    brokerUrl: str
    httpUrl: str
    nativeUrl: str
    brokerUrlSsl: str = ""
    httpUrlTls: str | None = None


@lookup.get("/{domain}/{tenant}/{name}/{topic:path}/bundle")
def get_range(
    domain: Domain, tenant: str, name: str, topic: str, context: InContext
) -> PlainTextResponse:
    """The range of the bundle that holds a topic, which need not exist; the whole ring for a
    namespace without bundles, as in Pulsar."""
    cluster, namespace = context.cluster().newest.cluster, f"{tenant}/{name}"
    bundles = context.plane.index.bundles(cluster, namespace)
    lows = sorted(parse_bundle(bundle)[1].low for bundle in bundles) or [0]
    where = position(f"{domain}://{namespace}/{topic}")
    return PlainTextResponse(str(bundle_at([*lows, FULL_RANGE_END], where)))


@lookup.get("/{domain}/{tenant}/{name}/{topic:path}", response_model_exclude_none=True)
def find_broker(
    domain: Domain, tenant: str, name: str, topic: str, context: InContext
) -> LookupData:
    """The broker that serves a topic; a bundle that no broker has is given to one. 404 if the
    namespace has no bundles, 503 if no broker can be named now."""
    answer = context.lookup().lookup(f"{domain}://{tenant}/{name}/{topic}", authoritative=True)
    if answer.kind is AnswerKind.CONNECT:
        urls = answer.urls or ServiceUrls()
        if not (urls.pulsar or urls.pulsar_tls):
            reason = f"{answer.broker} serves it, and its load report does not say where it listens"
            raise RefusedRequest(503, f"{reason}: pulsarServiceUrl is empty")
        plain = urls.pulsar or ""
        return LookupData(
            brokerUrl=plain,
            httpUrl=urls.web or f"http://{answer.broker}",
            nativeUrl=plain,
            brokerUrlSsl=urls.pulsar_tls or "",
            httpUrlTls=urls.web_tls,
        )
    if answer.kind is AnswerKind.MIGRATED and answer.target is not None:
        return _on_green(answer.target)
    if answer.cause is Cause.UNKNOWN_NAMESPACE:
        raise RefusedRequest(404, "Namespace not found")
    status = 412 if answer.cause is Cause.BAD_TOPIC else 503
    raise RefusedRequest(status, answer.says or str(answer.cause), str(answer.cause))


def _on_green(target: Target) -> LookupData:
    """The other cluster, whose brokers look further."""
    return LookupData(
        brokerUrl=target.brokerServiceUrl,
        httpUrl=target.serviceUrl,
        nativeUrl=target.brokerServiceUrl,
        brokerUrlSsl=target.brokerServiceUrlTls,
        httpUrlTls=target.serviceUrlTls or None,
    )
