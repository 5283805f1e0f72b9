"""/admin/v2/persistent and non-persistent: topics belong to brokers (PersistentTopics)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse

from api.context import InContext
from api.refusal import RefusedRequest
from trimtab.wire.lookup import AnswerKind

topics = APIRouter(tags=["topics"])

_REASON: Final = (
    "topics, their messages and subscriptions are their brokers' own: ask the broker that "
    "pulsar-admin topics lookup names; to move a bundle: pulsar-admin namespaces unload -b"
)
_ALL: Final = ["GET", "PUT", "POST", "DELETE"]


@topics.api_route(
    "/persistent/{tenant}/{name}/{topic}/{rest:path}", methods=_ALL, include_in_schema=False
)
@topics.api_route(
    "/non-persistent/{tenant}/{name}/{topic}/{rest:path}", methods=_ALL, include_in_schema=False
)
def redirect(  # noqa: PLR0913 - a path
    tenant: str, name: str, topic: str, rest: str, request: Request, context: InContext
) -> RedirectResponse:
    """Redirect the caller to the broker that serves the topic, as a Pulsar broker does if it does
    not own the topic: ``topics unload`` closes the topic there, and it is opened again. The answer
    is 405 if that broker has not published where it serves its admin paths."""
    del rest
    domain = request.url.path.split("/")[3]
    answer = context.lookup().lookup(f"{domain}://{tenant}/{name}/{topic}", authoritative=True)
    if answer.kind is AnswerKind.MIGRATED and answer.target is not None:
        return _redirect(request, answer.target.web)
    urls = answer.urls if answer.kind is AnswerKind.CONNECT else None
    base = urls and ((urls.web_tls if request.url.scheme == "https" else None) or urls.web)
    if not base:
        raise RefusedRequest(405, _REASON)
    return _redirect(request, base)


def _redirect(request: Request, base: str) -> RedirectResponse:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(base.rstrip("/") + request.url.path + query, status_code=307)


@topics.api_route("/persistent/{tenant}/{rest:path}", methods=_ALL, include_in_schema=False)
@topics.api_route("/non-persistent/{tenant}/{rest:path}", methods=_ALL, include_in_schema=False)
def refuse(tenant: str, rest: str) -> None:
    """Not done here: 405."""
    del tenant, rest
    raise RefusedRequest(405, _REASON)
