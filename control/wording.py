"""Says in words what an intent asks for, for a dry run and for plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from trimtab.explaining.words import format_count, iso
from trimtab.kept_plans.kept_plan import drain_plan_id
from trimtab.wire.intent import Intent, IntentKind


def describe(intent: Intent) -> str:
    """What the job does for an intent, without a subject: ``empty broker a:1, …``."""
    return WORDS[intent.kind](intent)


def _move(intent: Intent) -> str:
    what = intent.bundle or f"all bundles of {intent.name}"
    to = intent.broker or "where placement finds best"
    return f"move {what} to {to}"


def _split(intent: Intent) -> str:
    if intent.positions:
        at = ", ".join(f"0x{position:08x}" for position in intent.positions)
        return f"split {intent.bundle} at {at}"
    return f"split {intent.bundle} by {intent.algorithm or 'split.algorithm'}"


def _set(intent: Intent) -> str:
    return "set " + ", ".join(f"{name}={value}" for name, value in intent.settings.items())


def _reset(intent: Intent) -> str:
    what = ", ".join(intent.names) or "all settings"
    return f"return {what} to what the job was started with"


def _create(intent: Intent) -> str:
    count = format_count(len(intent.positions) + 1, "bundle")
    return f"create {intent.name} with {count}, each given to a broker"


def _isolate(intent: Intent) -> str:
    policy = intent.isolation
    if policy is None:
        return f"delete the isolation policy {intent.name}"
    spaces, hosts = ", ".join(policy.namespaces), ", ".join(policy.primary)
    return f"reserve brokers {hosts} for namespaces {spaces} (policy {intent.name})"


def _group(intent: Intent) -> str:
    if not intent.group:
        return f"take {intent.name} out of its anti-affinity group"
    return f"put {intent.name} into the anti-affinity group {intent.group}"


def _domain(intent: Intent) -> str:
    if not intent.brokers:
        return f"delete the failure domain {intent.name}"
    return f"let the failure domain {intent.name} be {', '.join(intent.brokers)}"


def _plan_drain(intent: Intent) -> str:
    how = "restarts" if intent.kind is IntentKind.RESTART_PLAN else "empties"
    plan = drain_plan_id(intent.id)
    return f"make the plan {plan}, which {how} {', '.join(intent.brokers)} once it is approved"


def _pin(intent: Intent) -> str:
    to = f", and place it on {intent.broker} if it must be placed again" if intent.broker else ""
    return f"leave {intent.bundle or intent.name} where it is until {iso(intent.until)}{to}"


def _mode(intent: Intent) -> str:
    if intent.mode is None:
        return f"give {intent.name} the cluster's mode"
    return f"set the mode of {intent.name} to {intent.mode}"


def _budget(intent: Intent) -> str:
    if intent.limit < 0:
        return f"give {intent.name} the budget of plans.tenant_moves"
    return f"let {format_count(intent.limit, 'bundle')} of {intent.name} move in a period"


def _start_migration(intent: Intent) -> str:
    where = ", ".join(intent.target.urls().values()) if intent.target else "nowhere"
    waves = f", in {format_count(len(intent.waves) + 1, 'wave')}" if intent.waves else ""
    return f"take the topics of {intent.scope} to {where}{waves}"


def _roll_back(intent: Intent) -> str:
    back = f"roll the migration {intent.migration} back"
    if not intent.alone:
        return f"{back}: topics return of which green has no write"
    return (
        f"{back} and give green up: topics return without asking it; what it has taken of them is "
        "not here, and if it still runs both clusters take writes"
    )


def _flag_cluster(intent: Intent) -> str:
    if not intent.migrated:
        return "set where the cluster's topics would go, and roll back what takes them there"
    return _start_migration(msgspec.structs.replace(intent, scope="the cluster"))


def _flag_namespace(intent: Intent) -> str:
    if not intent.migrated:
        return f"roll back the migration of {intent.name}"
    return f"take the topics of {intent.name} to where the cluster's go"


WORDS: Final[Mapping[IntentKind, Callable[[Intent], str]]] = {
    IntentKind.SETTINGS: _set,
    IntentKind.RESET: _reset,
    IntentKind.PAUSE: lambda _: "pause: decide nothing until it is resumed, not even repairs",
    IntentKind.RESUME: lambda _: "resume: decide again in the next round",
    IntentKind.DRAIN: lambda intent: f"empty {intent.broker}, and give it no bundle",
    IntentKind.UNDRAIN: lambda intent: f"use {intent.broker} again",
    IntentKind.READMIT: lambda intent: f"end the quarantine of {intent.bundle}",
    IntentKind.UNLOAD: _move,
    IntentKind.SPLIT: _split,
    IntentKind.MERGE: lambda intent: f"merge {intent.bundle} with its neighbour above",
    IntentKind.NAMESPACE: _create,
    IntentKind.ISOLATION: _isolate,
    IntentKind.ANTI_AFFINITY: _group,
    IntentKind.FAILURE_DOMAIN: _domain,
    IntentKind.APPROVE: lambda intent: f"carry out the plan {intent.plan}",
    IntentKind.REJECT: lambda intent: f"reject the plan {intent.plan}",
    IntentKind.CANCEL: lambda intent: (
        f"cancel the steps of the plan {intent.plan} that have not begun"
    ),
    IntentKind.UNDO: lambda intent: f"move back what the plan {intent.plan} has moved",
    IntentKind.DRAIN_PLAN: _plan_drain,
    IntentKind.RESTART_PLAN: _plan_drain,
    IntentKind.PIN: _pin,
    IntentKind.UNPIN: lambda intent: f"end the pin of {intent.bundle or intent.name}",
    IntentKind.MODE: _mode,
    IntentKind.BUDGET: _budget,
    IntentKind.MIGRATION_START: _start_migration,
    IntentKind.MIGRATION_PAUSE: lambda intent: f"pause the migration {intent.migration}",
    IntentKind.MIGRATION_RESUME: lambda intent: f"go on with the migration {intent.migration}",
    IntentKind.MIGRATION_ROLL_BACK: _roll_back,
    IntentKind.CLUSTER_MIGRATION: _flag_cluster,
    IntentKind.NAMESPACE_MIGRATION: _flag_namespace,
}
"""Only intents of operators; the watcher's are not described."""
