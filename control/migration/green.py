"""Asks green, by Pulsar's admin paths, whether topics can go there."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import quote

from control.migration.client_urls import client_flaws
from control.migration.cycles import Going, find_cycles, goes_on, is_blue, living
from control.migration.green_admin import Ask, NoAnswer, NotAllowed
from trimtab.explaining.words import name_some
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.migration.kept import Migrations
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER, namespace_of
from trimtab.wire.intent import Intent, IntentKind

MOST_TENANTS: Final = 100
"""Tenants that are asked of green, the first by name: each is a request."""

MOST_SCOPES: Final = 20
"""Scopes that one reason names. More: too many to read."""


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
    going: Going = Going(),  # noqa: B008 - a value
) -> Iterator[Flaw]:
    """What is wrong with green, as it answers now; ``brokers`` are blue's, as host:port.

    ``asked``: `ask` of `control.migration.green_admin`, or what `asking` there returns.

    Green must answer, take clients where they would be sent, have a broker and be another cluster.
    Each of ``tenants`` that it has must be allowed there. Nothing of what is ``going`` may come
    back to blue from it, by itself or by other clusters; a namespace that goes alone must not
    migrate from green at all.
    """
    web, clusters = target.web, list[str]()
    try:
        alive = living(web, asked)
        clusters += alive
        if not any(alive.values()):
            problem = f"target: {web} has no broker that is alive"
            yield IntentRule.UNREACHABLE_TARGET, problem
        if is_blue(alive, brokers):
            problem = (
                f"target: {web} is the cluster that is left, as its brokers are: green is blue"
            )
            yield IntentRule.INVALID_TARGET, problem
        yield from _tenant_flaws(web, alive.keys(), tenants, asked)
        yield from _cycle_flaws(web, brokers, going, asked)
    except NotAllowed as error:
        yield IntentRule.TARGET_ACCESS, f"target: {error}"
    except NoAnswer as error:
        yield IntentRule.UNREACHABLE_TARGET, f"target: {error}"
    yield from client_flaws(target, clusters, brokers, asked)


def _cycle_flaws(web: str, brokers: Collection[str], going: Going, asked: Ask) -> Iterator[Flaw]:
    """What of all that would go there would not stay."""
    ways = find_cycles(web, brokers, going, asked)
    for way, scopes in ways.items():
        what = "green migrates too, and its way leads"
        if going.scope not in scopes:
            what = f"green migrates {name_some(sorted(scopes), MOST_SCOPES)} too, and the way leads"
        yield IntentRule.MIGRATION_CYCLE, f"target: {what} back here: {' -> '.join(way)}"
    namespace = namespace_of(going.scope)
    if not ways and namespace and goes_on(web, namespace, asked):
        problem = f"target: {namespace} migrates there too: its topics would go on, or come back"
        yield IntentRule.MIGRATION_CYCLE, problem


def green_notes(target: Target, load: float, full: float, asked: Ask) -> Iterator[str]:
    """What is worth knowing of green's size: ``load`` is blue's in brokers that it would fill, and
    a broker above ``full`` (a fraction) is overloaded. Green's brokers may be of another size."""
    try:
        brokers = sum(map(len, living(target.web, asked).values()))
    except NoAnswer:
        return
    needed = max(1, math.ceil(load / full))
    if brokers < needed:
        yield (
            f"note: all of the cluster's load takes {needed} brokers like its own, and green has "
            f"{brokers} alive: add brokers there first, or begin with a small wave"
        )


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
