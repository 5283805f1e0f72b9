"""/admin/v2/clusters: the clusters, and their failure domains (Pulsar Clusters)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from api.context import Context, InContext
from api.refusal import RefusedRequest
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER
from trimtab.policies import Policies
from trimtab.wire.intent import IntentKind

clusters = APIRouter(prefix="/clusters", tags=["clusters"])


class FailureDomain(BaseModel):
    """Brokers that fail together (Pulsar FailureDomain)."""

    brokers: list[str] = []


@clusters.get("")
def list_clusters(context: InContext) -> list[str]:
    """The clusters that a job balances."""
    return sorted(context.plane.clusters())


@clusters.get("/{cluster}")
def get_cluster(cluster: str, context: InContext) -> dict[str, str]:
    """Where a cluster's clients connect, as its brokers' agents say; 404 if no job balances it."""
    require_cluster(context, cluster, 404, "Cluster does not exist")
    for broker in sorted(context.plane.clusters()[cluster].newest.usage):
        urls = context.plane.urls.read(cluster, broker)
        if urls is not None:
            found = {
                "serviceUrl": urls.web,
                "serviceUrlTls": urls.web_tls,
                "brokerServiceUrl": urls.pulsar,
                "brokerServiceUrlTls": urls.pulsar_tls,
            }
            return {name: url for name, url in found.items() if url}
    return {}


@clusters.put("/{cluster}")
def create_cluster(cluster: str, context: InContext) -> Response:
    """Not done here: 409 if a job balances it, else 405."""
    if cluster in context.plane.clusters():
        raise RefusedRequest(409, "Cluster already exists")
    raise RefusedRequest(405, f"{cluster}: a cluster exists once its brokers report; start them")


@clusters.delete("/{cluster}")
def delete_cluster(cluster: str, context: InContext) -> Response:
    """Not done here: 404 if no job balances it, else 405."""
    require_cluster(context, cluster, 404, "Cluster does not exist")
    raise RefusedRequest(405, f"{cluster}: a cluster ends once its brokers stop; drain them first")


@clusters.get("/{cluster}/failureDomains", response_model_exclude_unset=True)
def list_domains(cluster: str, context: InContext) -> dict[str, FailureDomain]:
    """A cluster's failure domains by name; none of a cluster that does not exist, as in Pulsar."""
    if cluster not in context.plane.clusters():
        return {}
    found: dict[str, list[str]] = {}
    for broker, domain in sorted(_policies(context, cluster).domains.items()):
        found.setdefault(domain, []).append(broker)
    return {name: FailureDomain(brokers=brokers) for name, brokers in found.items()}


@clusters.get("/{cluster}/failureDomains/{name}")
def get_domain(cluster: str, name: str, context: InContext) -> FailureDomain:
    """The brokers of a failure domain; 404 if it does not exist."""
    require_cluster(context, cluster)
    found = list_domains(cluster, context)
    if name not in found:
        raise RefusedRequest(404, f"Domain {name} for cluster {cluster} does not exist")
    return found[name]


@clusters.post("/{cluster}/failureDomains/{name}", status_code=204)
def set_domain(cluster: str, name: str, domain: FailureDomain, context: InContext) -> Response:
    """Define a failure domain; 409 if one of its brokers is in another."""
    require_cluster(context, cluster)
    domains = _policies(context, cluster).domains
    for broker in domain.brokers:
        if domains.get(broker, name) != name:
            raise RefusedRequest(409, f"[{broker}] already exists in {domains[broker]}")
    if not domain.brokers and name not in domains.values():
        reason = f"brokers: must name one at least; {name} without any would mean nothing"
        raise RefusedRequest(412, reason)
    members = tuple(domain.brokers)
    context.tell(IntentKind.FAILURE_DOMAIN, cluster, name=name, brokers=members)
    return Response(status_code=204)


@clusters.delete("/{cluster}/failureDomains/{name}")
def delete_domain(cluster: str, name: str, context: InContext) -> Response:
    """Delete a failure domain; 404 if it does not exist."""
    require_cluster(context, cluster)
    if name not in list_domains(cluster, context):
        reason = f"Domain-name {name} or cluster {cluster} does not exist"
        raise RefusedRequest(404, reason)
    context.tell(IntentKind.FAILURE_DOMAIN, cluster, name=name)
    return Response()


class ClusterUrl(BaseModel):
    """Where another cluster listens; ``empty`` is what Pulsar's command sends too."""

    serviceUrl: str | None = None
    serviceUrlTls: str | None = None
    brokerServiceUrl: str | None = None
    brokerServiceUrlTls: str | None = None
    empty: bool | None = None

    def target(self) -> Target:
        return Target(
            self.serviceUrl or "",
            self.serviceUrlTls or "",
            self.brokerServiceUrl or "",
            self.brokerServiceUrlTls or "",
        )


@clusters.get("/{cluster}/migrate")
def get_migration(cluster: str, context: InContext) -> dict[str, Any]:
    """Whether a cluster migrates, and where to (Pulsar ClusterPolicies), however it began; 404
    before it was set."""
    require_cluster(context, cluster, 404, "Cluster does not exist")
    kept = context.plane.migrations_of(context.plane.cluster(cluster))
    whole = kept.flagged(CLUSTER)
    green = kept.green if whole is None else whole.target
    if green is None:
        raise RefusedRequest(404, "Cluster does not exist")
    return {"migrated": whole is not None, "migratedClusterUrl": green.urls()}


@clusters.post("/{cluster}/migrate")
def set_migration(
    cluster: str,
    context: InContext,
    migrated: bool = False,
    url: ClusterUrl | None = None,
) -> Response:
    """Set where a cluster's topics go. With ``migrated`` they go there. Without it they come back,
    except those that the other cluster has taken a write of."""
    require_cluster(context, cluster, 404, "Cluster does not exist")
    target = None if url is None else url.target()
    context.tell(IntentKind.CLUSTER_MIGRATION, cluster, target=target, migrated=migrated)
    return Response()


def require_cluster(context: Context, cluster: str, status: int = 412, reason: str = "") -> None:
    """Raise RefusedRequest unless a job balances the cluster."""
    if cluster not in context.plane.clusters():
        raise RefusedRequest(status, reason or f"Cluster {cluster} does not exist.")


def _policies(context: Context, cluster: str) -> Policies:
    return context.plane.memory(context.plane.cluster(cluster)).policies
