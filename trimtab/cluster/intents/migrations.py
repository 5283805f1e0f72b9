"""Intents about migrations to another cluster: what is wrong with one, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from trimtab.intent_rules import Flaw, IntentRule
from trimtab.migration.flaws import scope_flaws, target_flaws
from trimtab.migration.kept import Migrations
from trimtab.migration.life import MigrationEvent, MigrationState, allows
from trimtab.migration.migration import Gate, Migration, Target
from trimtab.migration.progress import advance, forget_failures
from trimtab.migration.scopes import CLUSTER, is_scope
from trimtab.nearby import nearby
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

VERBS: Final[Mapping[IntentKind, MigrationEvent]] = MappingProxyType(
    {
        IntentKind.MIGRATION_PAUSE: MigrationEvent.PAUSE,
        IntentKind.MIGRATION_RESUME: MigrationEvent.RESUME,
        IntentKind.MIGRATION_ROLL_BACK: MigrationEvent.ROLL_BACK,
    }
)


_PARTS: Final = frozenset({"report", "pause", "resume", "rollback"})
"""What follows a migration's id in a path, which may have slashes itself."""
_LEFT_OUT: Final = frozenset({"", ".", ".."})
"""Parts of a path that clients and proxies leave out, or follow."""


def start_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with a migration that is to begin."""
    yield from _id_flaws(intent)
    gate = intent.gate or Gate()
    for problem in target_flaws(intent.target, _brokers(memory)):
        yield IntentRule.INVALID_TARGET, problem
    for problem in scope_flaws(intent.scope, intent.waves, gate):
        yield IntentRule.INVALID_SCOPE, problem
    yield from _taken(memory.migrations, intent.scope)


def verb_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with a verb for a migration."""
    it = memory.migrations.find(intent.migration)
    if it is None:
        near = nearby(intent.migration, [each.id for each in memory.migrations.items])
        yield IntentRule.UNKNOWN_MIGRATION, f"migration: {intent.migration} is not known; {near}"
    elif not allows(it.state, VERBS[intent.kind]) and not _gives_up(it, intent):
        problem = f"migration: {it.id} is {it.state}, and nothing to {VERBS[intent.kind]}"
        yield IntentRule.MIGRATION_STATE, problem


def cluster_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with Pulsar's flag of a cluster."""
    migrations = memory.migrations
    if intent.target is None and not intent.migrated and migrations.flagged(CLUSTER) is None:
        yield IntentRule.NO_SUBJECT, "target: says nothing of where topics go, and none have gone"
        return
    if intent.target is not None or intent.migrated:
        for problem in target_flaws(intent.target, _brokers(memory)):
            yield IntentRule.INVALID_TARGET, problem
    whole = migrations.flagged(CLUSTER) if intent.migrated else None
    if intent.migrated and whole is None:
        yield from _id_flaws(intent)
        yield from _taken(memory.migrations, CLUSTER)
    elif whole is not None and intent.target not in (None, whole.target):
        problem = (
            f"target: the migration {whole.id} takes the cluster to {whole.target.web} already"
        )
        yield IntentRule.ALREADY_MIGRATING, problem


def namespace_flaws(memory: Memory, intent: Intent, *_: object) -> Iterator[Flaw]:
    """What is wrong with Pulsar's flag of a namespace."""
    for problem in scope_flaws(intent.name, (), Gate()):
        yield IntentRule.INVALID_SCOPE, problem
    migrations = memory.migrations
    if not intent.migrated or migrations.flagged(intent.name) is not None:
        return
    if migrations.green is None:
        # Pulsar takes the flag, and it has no effect.
        problem = "target: the cluster has no URL of green yet; set that of the cluster first"
        yield IntentRule.INVALID_TARGET, problem
    yield from _id_flaws(intent)
    yield from _taken(migrations, intent.name)


def _start(migrations: Migrations, intent: Intent, now_ms: int) -> Migrations:
    assert intent.target is not None
    return _begun(migrations, intent, intent.scope, intent.target, now_ms)


def _verb(migrations: Migrations, intent: Intent, now_ms: int) -> Migrations:
    it = migrations.find(intent.migration)
    assert it is not None
    if _gives_up(it, intent):
        return migrations.with_item(
            replace(it, alone=True, why=intent.reason or it.why, moved=now_ms)
        )
    after = _after(it, VERBS[intent.kind], intent.reason, now_ms)
    if intent.kind is IntentKind.MIGRATION_ROLL_BACK:
        after = replace(after, alone=intent.alone)
    return migrations.with_item(after)


def _gives_up(it: Migration, intent: Intent) -> bool:
    """Whether a rollback that is under way shall no longer ask green."""
    is_asked = intent.kind is IntentKind.MIGRATION_ROLL_BACK and intent.alone
    return is_asked and it.state is MigrationState.ROLLING_BACK and not it.alone


def _cluster(migrations: Migrations, intent: Intent, now_ms: int) -> Migrations:
    migrations = replace(migrations, green=intent.target or migrations.green)
    return _flag(migrations, intent, CLUSTER, now_ms)


def _namespace(migrations: Migrations, intent: Intent, now_ms: int) -> Migrations:
    return _flag(migrations, intent, intent.name, now_ms)


def _progress(migrations: Migrations, intent: Intent, now_ms: int) -> Migrations:
    it = migrations.find(intent.migration)
    # Counts of another state or wave are out of date: what was being terminated while they were
    # read is missing in them, and a rollback would end without it.
    if it is None or (intent.state, intent.wave) not in ((None, 0), (it.state, it.wave)):
        return migrations
    return migrations.with_item(advance(it, intent.counts, intent.unseen, now_ms))


def _flag(migrations: Migrations, intent: Intent, scope: str, now_ms: int) -> Migrations:
    """Begin the migration of a scope, or roll it back, as Pulsar's flag says."""
    it = migrations.flagged(scope)
    if intent.migrated and it is None and migrations.green is not None:
        return _begun(migrations, intent, scope, migrations.green, now_ms)
    if not intent.migrated and it is not None and allows(it.state, MigrationEvent.ROLL_BACK):
        return migrations.with_item(_after(it, MigrationEvent.ROLL_BACK, intent.reason, now_ms))
    return migrations


def _begun(
    migrations: Migrations, intent: Intent, scope: str, target: Target, now_ms: int
) -> Migrations:
    it = Migration(
        id=intent.id,
        cluster=intent.cluster,
        scope=scope,
        target=target,
        apart=tuple(each.scope for each in migrations.inside(scope)),
        waves=intent.waves,
        gate=intent.gate or Gate(),
        # No broker has named a bundle yet: it is not complete before that.
        unseen=1,
        at=now_ms,
        seen=now_ms,
        moved=now_ms,
        by=intent.by,
        reason=intent.reason,
    )
    return migrations.with_item(it)


def _after(it: Migration, event: MigrationEvent, why: str, now_ms: int) -> Migration:
    after = it.after(event, why=why, stopped=False, ended=0, moved=now_ms)
    return forget_failures(after) if after.state is MigrationState.RUNNING else after


def _id_flaws(intent: Intent) -> Iterator[Flaw]:
    """Why no path could name the migration that begins: it has the intent's id."""
    parts = intent.id.split("/")
    if parts[-1] in _PARTS:
        last = parts[-1]
        problem = f"id: ends in {last}, which is asked of the migration before it: give another one"
        yield IntentRule.INVALID_ID, problem
    if not _LEFT_OUT.isdisjoint(parts):
        problem = "id: begins or ends with a slash, or has // or a part of dots: give another one"
        yield IntentRule.INVALID_ID, problem


def _taken(migrations: Migrations, scope: str) -> Iterator[Flaw]:
    """What keeps a scope from migrating; not that parts of it have migrated."""
    if not is_scope(scope):
        return
    inside = migrations.inside(scope)
    for each in migrations.claiming(scope):
        if each not in inside:
            problem = f"scope: {each.scope} is part of the migration {each.id}, which is"
            yield IntentRule.ALREADY_MIGRATING, f"{problem} {each.state}"
    for each in inside:
        for left in each.apart:
            if not migrations.claiming(left):
                # It would not go with the rest of its namespace, nor by a migration of its own.
                problem = f"scope: {left} has come back from where {each.scope} has migrated to"
                yield IntentRule.ALREADY_MIGRATING, f"{problem}: migrate it first"


def _brokers(memory: Memory) -> Collection[str]:
    """The cluster's brokers: a broker's id is where its web service listens."""
    return memory.appended.keys()


MIGRATIONS: Final[Mapping[IntentKind, Callable[[Migrations, Intent, int], Migrations]]] = (
    MappingProxyType(
        {
            IntentKind.MIGRATION_START: _start,
            **dict.fromkeys(VERBS, _verb),
            IntentKind.CLUSTER_MIGRATION: _cluster,
            IntentKind.NAMESPACE_MIGRATION: _namespace,
            IntentKind.MIGRATION_PROGRESS: _progress,
        }
    )
)
"""The migrations after an intent without flaws; with the batch timestamp."""

MIGRATION_FLAWS: Final[
    Mapping[IntentKind, Callable[[Memory, Intent, Settings], Iterator[Flaw]]]
] = MappingProxyType(
    {
        IntentKind.MIGRATION_START: start_flaws,
        **dict.fromkeys(VERBS, verb_flaws),
        IntentKind.CLUSTER_MIGRATION: cluster_flaws,
        IntentKind.NAMESPACE_MIGRATION: namespace_flaws,
    }
)
