"""/trimtab/v1/clusters/{cluster}/policies: isolation, anti-affinity groups, failure domains."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel

from api.context import InContext
from api.trimtab.changes import Change, HowToChange
from trimtab.policies import Isolation
from trimtab.wire.intent import IntentKind

own_policies = APIRouter(prefix="/clusters/{cluster}/policies", tags=["policies"])
own_groups = APIRouter(prefix="/clusters/{cluster}/policies/anti-affinity", tags=["policies"])


class NewIsolation(BaseModel, extra="forbid"):
    """Which namespaces may be where: regular expressions of namespaces and of brokers' hosts."""

    namespaces: list[str]
    primary: list[str]
    secondary: list[str] = []
    minAvailable: int = 1


class Members(BaseModel, extra="forbid"):
    """The brokers of a failure domain, host:port."""

    brokers: list[str]


@own_policies.get("")
def list_policies(cluster: str, context: InContext) -> dict[str, Any]:
    """The policies of a cluster as of now."""
    policies = context.plane.memory(context.plane.cluster(cluster)).policies
    told: dict[str, Any] = msgspec.to_builtins(policies)
    return told


@own_policies.put("/isolation/{name}")
def set_isolation(cluster: str, name: str, policy: NewIsolation, how: HowToChange) -> Change:
    """Reserve brokers for namespaces; of several policies for one the first by name applies."""
    wanted = Isolation(
        namespaces=tuple(policy.namespaces),
        primary=tuple(policy.primary),
        secondary=tuple(policy.secondary),
        min_available=policy.minAvailable,
    )
    return how.ask(IntentKind.ISOLATION, cluster, name=name, isolation=wanted)


@own_policies.delete("/isolation/{name}")
def delete_isolation(cluster: str, name: str, how: HowToChange) -> Change:
    """Delete an isolation policy."""
    return how.ask(IntentKind.ISOLATION, cluster, name=name)


@own_policies.put("/failure-domains/{name}")
def set_failure_domain(cluster: str, name: str, members: Members, how: HowToChange) -> Change:
    """Say which brokers fail together; some may be absent now."""
    brokers = tuple(members.brokers)
    return how.ask(IntentKind.FAILURE_DOMAIN, cluster, name=name, brokers=brokers)


@own_policies.delete("/failure-domains/{name}")
def delete_failure_domain(cluster: str, name: str, how: HowToChange) -> Change:
    """Delete a failure domain."""
    return how.ask(IntentKind.FAILURE_DOMAIN, cluster, name=name)


@own_groups.put("/{tenant}/{namespace}/{group}")
def join_group(cluster: str, tenant: str, namespace: str, group: str, how: HowToChange) -> Change:
    """Put a namespace into an anti-affinity group, whose members spread over brokers."""
    return how.ask(IntentKind.ANTI_AFFINITY, cluster, name=f"{tenant}/{namespace}", group=group)


@own_groups.delete("/{tenant}/{namespace}")
def leave_group(cluster: str, tenant: str, namespace: str, how: HowToChange) -> Change:
    """Take a namespace out of its anti-affinity group."""
    return how.ask(IntentKind.ANTI_AFFINITY, cluster, name=f"{tenant}/{namespace}")
