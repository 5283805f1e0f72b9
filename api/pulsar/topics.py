"""/admin/v2/persistent and non-persistent: topics belong to brokers (PersistentTopics)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from api.refusal import RefusedRequest

topics = APIRouter(tags=["topics"])

_REASON: Final = (
    "topics, their messages and subscriptions are their brokers' own: ask the broker that "
    "pulsar-admin topics lookup names; to move a bundle: pulsar-admin namespaces unload -b"
)


_ALL: Final = ["GET", "PUT", "POST", "DELETE"]


@topics.api_route("/persistent/{tenant}/{rest:path}", methods=_ALL, include_in_schema=False)
@topics.api_route("/non-persistent/{tenant}/{rest:path}", methods=_ALL, include_in_schema=False)
def refuse(tenant: str, rest: str) -> None:
    """Not done here: 405."""
    del tenant, rest
    raise RefusedRequest(405, _REASON)
