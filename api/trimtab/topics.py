"""/trimtab/v1/clusters/{cluster}/topics: where a topic of Pulsar's is served."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter

from api.context import InContext
from api.refusal import RefusedRequest
from trimtab.migration.topic_life import REDIRECTING
from trimtab.wire.lookup import AnswerKind, Cause, ServiceUrls
from trimtab.wire.topics import TopicRecord

own_topics = APIRouter(prefix="/clusters/{cluster}/topics", tags=["topics"])


@own_topics.get("/{domain}/{tenant}/{namespace}/{topic:path}")
def find_broker(  # noqa: PLR0913 - a path
    cluster: str,
    domain: Literal["persistent", "non-persistent"],
    tenant: str,
    namespace: str,
    topic: str,
    context: InContext,
) -> dict[str, Any]:
    """The bundle that holds a topic, and the broker that serves it with its URLs; a bundle that no
    broker has is given to one. ``migration``: how far the topic has come to another cluster, whose
    URLs stand here once nothing of it is left."""
    context.plane.cluster(cluster)
    whole = f"{domain}://{tenant}/{namespace}/{topic}"
    answer = context.plane.lookup(cluster).lookup(whole, authoritative=True)
    record = context.plane.topics.named(cluster, f"{tenant}/{namespace}", [whole]).get(whole)
    migration = (
        {} if record is None else {"migration": record.state.value, "migrated": _left(record)}
    )
    if answer.kind is AnswerKind.MIGRATED and answer.target is not None:
        return {
            "topic": whole,
            "migrated": True,
            "brokerUrl": answer.target.brokerServiceUrl,
            "brokerUrlTls": answer.target.brokerServiceUrlTls,
            "httpUrl": answer.target.web,
            **migration,
        }
    if answer.kind is AnswerKind.CONNECT:
        urls = answer.urls or ServiceUrls()
        return {
            "topic": whole,
            "bundle": answer.bundle,
            "broker": answer.broker,
            "brokerUrl": urls.pulsar,
            "brokerUrlTls": urls.pulsar_tls,
            "httpUrl": urls.web,
            **migration,
        }
    if answer.cause is Cause.UNKNOWN_NAMESPACE:
        raise RefusedRequest(404, f"{tenant}/{namespace}: no namespace that has bundles")
    status = 412 if answer.cause is Cause.BAD_TOPIC else 503
    raise RefusedRequest(status, answer.says or str(answer.cause), str(answer.cause))


def _left(record: TopicRecord) -> bool:
    """Pulsar's flag: producers are sent to the other cluster."""
    return record.state in REDIRECTING
