"""/admin/v2/clusters/{cluster}/namespaceIsolationPolicies (Pulsar ClustersBase)."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from api.context import Context, InContext
from api.pulsar.clusters import require_cluster
from api.refusal import RefusedRequest
from control.intents import Objections
from trimtab.cluster.intents.policies import isolation_problems
from trimtab.policies import Isolation, host_of, matches
from trimtab.wire.intent import IntentKind

isolation = APIRouter(
    prefix="/clusters/{cluster}/namespaceIsolationPolicies", tags=["isolation policies"]
)

_LIMIT: Final = "min_limit"

Scope = Literal["all_matching", "none", "changed"]
"""Which namespaces a change of a policy unloads."""


class Failover(BaseModel):
    """When secondary brokers serve too (Pulsar AutoFailoverPolicyData). ``usage_threshold`` is kept
    for Pulsar's clients; trimtab counts brokers and does not read it."""

    policy_type: Literal["min_available"] = "min_available"
    parameters: dict[str, str] = {}


class IsolationPolicy(BaseModel):
    """Reserves brokers for namespaces, both by regular expressions (NamespaceIsolationData)."""

    namespaces: list[str]
    primary: list[str]
    secondary: list[str] = []
    auto_failover_policy: Failover = Failover()
    unload_scope: Scope | None = None


class IsolatedBroker(BaseModel):
    """Which namespaces a broker is reserved for (BrokerNamespaceIsolationData)."""

    brokerName: str
    policyName: str | None = None
    namespaceRegex: list[str] = []
    primary: bool = False


@isolation.get("", response_model_exclude_none=True)
def list_policies(cluster: str, context: InContext) -> dict[str, IsolationPolicy]:
    """All isolation policies of a cluster, by name."""
    require_cluster(context, cluster, 404)
    return {name: _to_pulsar(policy) for name, policy in _policies(context, cluster).items()}


@isolation.get("/brokers", response_model_exclude_none=True)
def list_isolated(cluster: str, context: InContext) -> list[IsolatedBroker]:
    """For each broker, what it is reserved for."""
    require_cluster(context, cluster, 404)
    policies = _policies(context, cluster)
    return [
        _isolated(each, policies) for each in sorted(context.plane.cluster(cluster).newest.usage)
    ]


@isolation.get("/brokers/{broker}", response_model_exclude_none=True)
def get_isolated(cluster: str, broker: str, context: InContext) -> IsolatedBroker:
    """What a broker is or would be reserved for; it may be absent."""
    require_cluster(context, cluster, 404)
    return _isolated(broker, _policies(context, cluster))


@isolation.get("/{name}", response_model_exclude_none=True)
def get_policy(cluster: str, name: str, context: InContext) -> IsolationPolicy:
    """One isolation policy; 404 if it does not exist."""
    found = list_policies(cluster, context)
    if name not in found:
        reason = f"NamespaceIsolationPolicies for cluster {cluster} does not exist"
        raise RefusedRequest(404, reason)
    return found[name]


@isolation.post("/{name}", status_code=204)
def set_policy(cluster: str, name: str, policy: IsolationPolicy, context: InContext) -> Response:
    """Set an isolation policy; 400 with all that is wrong with it. The namespaces of
    ``unload_scope``, by default those that the change concerns, are unloaded meanwhile."""
    require_cluster(context, cluster)
    before = _policies(context, cluster).get(name)
    limit = policy.auto_failover_policy.parameters.get(_LIMIT, "1")
    if not limit.lstrip("-").isdecimal():
        raise RefusedRequest(400, f"auto_failover_policy.{_LIMIT}: {limit} is not a whole number")
    wanted = Isolation(
        namespaces=tuple(policy.namespaces),
        primary=tuple(policy.primary),
        secondary=tuple(policy.secondary),
        min_available=int(limit),
    )
    if problems := list(isolation_problems(wanted)):
        raise RefusedRequest(400, "; ".join(problems))
    context.tell(IntentKind.ISOLATION, cluster, name=name, isolation=wanted)
    patterns = _unloaded(before, wanted, policy.unload_scope or "changed")
    for namespace in context.plane.index.namespaces(cluster) if patterns else ():
        if matches(namespace, patterns) and _is_owned(context, cluster, namespace):
            # Where no broker may have them, they stay.
            with suppress(Objections):
                context.ask(IntentKind.UNLOAD, cluster, namespace, name=namespace)
    return Response(status_code=204)


@isolation.delete("/{name}", status_code=204)
def delete_policy(cluster: str, name: str, context: InContext) -> Response:
    """Delete an isolation policy; nothing happens if it does not exist, as in Pulsar."""
    require_cluster(context, cluster)
    if name in _policies(context, cluster):
        context.tell(IntentKind.ISOLATION, cluster, name=name)
    return Response(status_code=204)


def _unloaded(before: Isolation | None, wanted: Isolation, scope: Scope) -> tuple[str, ...]:
    """Which namespaces are unloaded, by patterns (NamespaceIsolationPolicyUnloadScope)."""
    if scope == "none":
        return ()
    if scope == "all_matching" or before is None:
        return wanted.namespaces
    if {*before.primary} != {*wanted.primary}:
        return tuple({**dict.fromkeys(before.namespaces), **dict.fromkeys(wanted.namespaces)})
    return tuple(sorted({*before.namespaces} ^ {*wanted.namespaces}))


def _is_owned(context: Context, cluster: str, namespace: str) -> bool:
    return any(record.owner for record in context.plane.records(cluster, namespace).values())


def _policies(context: Context, cluster: str) -> dict[str, Isolation]:
    return context.plane.memory(context.plane.cluster(cluster)).policies.isolation


def _to_pulsar(policy: Isolation) -> IsolationPolicy:
    limit = {_LIMIT: str(policy.min_available), "usage_threshold": "100"}
    return IsolationPolicy(
        namespaces=list(policy.namespaces),
        primary=list(policy.primary),
        secondary=list(policy.secondary),
        auto_failover_policy=Failover(parameters=limit),
    )


def _isolated(broker: str, policies: dict[str, Isolation]) -> IsolatedBroker:
    host = host_of(broker) if ":" in broker else broker
    for name, policy in policies.items():
        primary = matches(host, policy.primary)
        if primary or matches(host, policy.secondary):
            return IsolatedBroker(
                brokerName=broker,
                policyName=name,
                namespaceRegex=list(policy.namespaces),
                primary=primary,
            )
    return IsolatedBroker(brokerName=broker)
