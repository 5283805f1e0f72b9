"""Asks green, by Pulsar's admin paths, whether topics can go there."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from control.green_admin import BROKERS, Ask, Elsewhere, NoAnswer, NotAllowed
from trimtab.cluster.existing import Flaw
from trimtab.intent_rules import IntentRule
from trimtab.migration.flaws import hosts_of
from trimtab.migration.kept import Migrations
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER
from trimtab.wire.control import Intent, IntentKind

MOST_HOPS: Final = 8
"""Clusters of a chain that are asked. More are no chain that anybody means."""
MOST_TENANTS: Final = 100
"""Tenants that are asked of green, the first by name: each is a request."""


def find_green(intent: Intent, kept: Migrations) -> Target | None:
    """Where the intent would send topics; None if none would begin to go, as in a rollback, which
    must not wait for a green that is gone."""
    if intent.kind is IntentKind.MIGRATION_START:
        return intent.target
    if not intent.migrated:
        return None
    if intent.kind is IntentKind.NAMESPACE_MIGRATION:
        return None if kept.flagged(intent.name) else kept.green
    return intent.target


def find_scope(intent: Intent) -> str:
    """What would go there."""
    if intent.kind is IntentKind.NAMESPACE_MIGRATION:
        return intent.name
    return intent.scope or CLUSTER


def green_flaws(
    target: Target,
    brokers: Collection[str],
    tenants: Collection[str],
    asked: Ask,
    namespace: str = "",
) -> Iterator[Flaw]:
    """What is wrong with green, as it answers now; ``brokers`` are blue's, as host:port.

    ``asked``: `control.green_admin.ask`, or what `asking` there returns. Green must answer, have a
    broker, be another cluster, let each of ``tenants`` that it has be there, and not migrate back
    to blue by itself or by others; ``namespace``, if that alone would go, not at all.
    """
    web = target.web
    try:
        living = _living(web, asked)
        if not any(living.values()):
            problem = f"target: {web} has no broker that is alive"
            yield IntentRule.UNREACHABLE_TARGET, problem
        if _is_blue(living, brokers):
            problem = (
                f"target: {web} is the cluster that is left, as its brokers are: green is blue"
            )
            yield IntentRule.INVALID_TARGET, problem
        yield from _tenant_flaws(web, living.keys(), tenants, asked)
        way = find_cycle(web, brokers, asked)
        if way:
            problem = f"target: green migrates too, and its way leads back here: {' -> '.join(way)}"
            yield IntentRule.MIGRATION_CYCLE, problem
        if namespace and _goes_on(web, namespace, asked):
            problem = (
                f"target: {namespace} migrates there too: its topics would go on, or come back"
            )
            yield IntentRule.MIGRATION_CYCLE, problem
    except NotAllowed as error:
        yield IntentRule.TARGET_ACCESS, f"target: {error}"
    except NoAnswer as error:
        yield IntentRule.UNREACHABLE_TARGET, f"target: {error}"


def green_notes(target: Target, load: float, full: float, asked: Ask) -> Iterator[str]:
    """What is worth knowing of green's size: ``load`` is blue's in brokers that it would fill, and
    a broker above ``full`` (a fraction) is overloaded. Green's brokers may be of another size."""
    try:
        living = sum(map(len, _living(target.web, asked).values()))
    except NoAnswer:
        return
    needed = max(1, math.ceil(load / full))
    if living < needed:
        yield (
            f"note: all of the cluster's load takes {needed} brokers like its own, and green has "
            f"{living} alive: add brokers there first, or begin with a small wave"
        )


def _living(web: str, asked: Ask) -> dict[str, list[str]]:
    """The clusters of a web service, with the ids of their living brokers; raises NoAnswer.

    Without those that it only knows of, as a cluster does that replicates to others: it sends who
    asks for them there."""
    living = dict[str, list[str]]()
    for name in _clusters_of(web, asked):
        with suppress(Elsewhere):
            told = asked(web, f"{BROKERS}{quote(name)}")
            living[name] = list(map(str, told)) if isinstance(told, list) else []
    return living


def _is_blue(living: Mapping[str, Collection[str]], brokers: Collection[str]) -> bool:
    """Whether each cluster of a web service has brokers of blue.

    One that has not is green: blue may be known to the same web service."""
    found = [ids for ids in living.values() if ids]
    return bool(found) and all(any(each in brokers for each in ids) for ids in found)


def _tenant_flaws(
    web: str, clusters: Collection[str], tenants: Collection[str], asked: Ask
) -> Iterator[Flaw]:
    """Tenants that green has, and lets be in other clusters only: it refuses their namespaces."""
    for tenant in sorted(tenants)[:MOST_TENANTS]:
        try:
            told = asked(web, f"tenants/{quote(tenant)}")
        except NoAnswer:
            # 404: it is created. What else there is, the first topic's `create_on` says.
            continue
        allowed = told.get("allowedClusters") if isinstance(told, dict) else None
        if allowed and not set(allowed) & set(clusters):
            names = ", ".join(map(str, allowed))
            problem = (
                f"target: its tenant {tenant} may be in {names} only; there: pulsar-admin tenants "
                f"update {tenant} --allowed-clusters {','.join(clusters)}"
            )
            yield IntentRule.TARGET_POLICY, problem


def find_cycle(web: str, brokers: Collection[str], asked: Ask) -> list[str]:
    """The URLs that lead from green back to one of ``brokers``; none if no migration does."""
    way, waiting = list[str](), [web]
    while waiting and len(way) < MOST_HOPS:
        here = waiting.pop()
        way.append(here)
        for after in _onward(here, asked):
            if _leads_to(after, brokers, asked):
                return [*way, after]
            if after not in way:
                waiting.append(after)
    return []


def _onward(web: str, asked: Ask) -> list[str]:
    """Where the clusters of a web service migrate to; nowhere if it does not answer."""
    try:
        found = [_migrated_to(web, name, asked) for name in _clusters_of(web, asked)]
    except NoAnswer:
        return []
    return list(filter(None, found))


def _leads_to(web: str, brokers: Collection[str], asked: Ask) -> bool:
    """Whether a URL is one of blue's brokers, or of what stands in front of them."""
    if any(host in brokers for host in hosts_of(web)):
        return True
    try:
        return _is_blue(_living(web, asked), brokers)
    except NoAnswer:
        return False


def _clusters_of(web: str, asked: Ask) -> list[str]:
    """The clusters of a web service; raises NoAnswer."""
    found = asked(web, "clusters")
    return [str(each) for each in found if each != "global"] if isinstance(found, list) else []


def _goes_on(web: str, namespace: str, asked: Ask) -> bool:
    """Whether a namespace migrates by itself from green; not if green does not have it."""
    try:
        told = asked(web, f"namespaces/{quote(namespace)}")
    except NoAnswer:
        return False
    return isinstance(told, dict) and bool(told.get("migrated"))


def _migrated_to(web: str, cluster: str, asked: Ask) -> str:
    """Where a cluster migrates to; empty if it does not, or does not say."""
    try:
        told = asked(web, f"clusters/{quote(cluster)}/migrate")
    except NoAnswer:
        # 404 before the first migration.
        return ""
    if not isinstance(told, dict) or not told.get("migrated"):
        return ""
    urls = told.get("migratedClusterUrl") or {}
    return str(urls.get("serviceUrl") or urls.get("serviceUrlTls") or "")
