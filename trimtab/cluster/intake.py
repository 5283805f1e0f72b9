"""Applies a batch's intents and snapshots to a cluster's state.

An intent changes the settings or what is known about brokers; a snapshot replaces the broker's
previous one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trimtab.cluster.batch import Batch
from trimtab.cluster.intents.apply import Applied, Refused, apply_intent
from trimtab.cluster.intents.existing import Existing
from trimtab.cluster.outcomes import Told, accept, refuse
from trimtab.cluster.state import ClusterState
from trimtab.state.memory import Memory
from trimtab.state.pace import Pace, learn_pace
from trimtab.wire.intent import OF_THE_WATCHER, Intent, IntentKind
from trimtab.wire.rows import Intake, Row, Tag, dead_letter, json_row


def intake_row(cluster: ClusterState, rows: list[Row]) -> Row:
    """The counts of a batch's snapshots, for the sinks."""
    intake = Intake(
        cluster=cluster.name,
        accepted=sum(row.accepted for row in rows),
        duplicate=sum(row.duplicate for row in rows),
        old=sum(row.old for row in rows),
        newest_ms=max(cluster.memory.appended.values(), default=0),
    )
    return json_row(cluster.name, Tag.INTAKE, intake)


def answer_intent(
    cluster: ClusterState, batch: Batch, intent: Intent, at_ms: int, now_ms: int
) -> Applied:
    """The memory after one of the batch's intents, which Kafka got at ``at_ms``; or its refusal."""
    liveness = cluster.memory.liveness.recent(cluster.settings.flapping, now_ms)
    memory = replace(cluster.memory, liveness=liveness)
    existing = _existing(cluster, batch)
    return apply_intent(memory, intent, cluster.defaults, at_ms, now_ms, existing)


def is_outdated(memory: Memory, intent: Intent, row: Row) -> bool:
    """Whether the watcher of an older job says it, late; the newer one's word stands."""
    return intent.kind in OF_THE_WATCHER and memory.watcher.is_newer_than(
        intent.generation, row.appended_ms
    )


def note_watcher(memory: Memory, intent: Intent, row: Row) -> Memory:
    """The memory after an intent of a job's watcher: it knows which job's was heard last. An
    operator's intent changes nothing, even if it names a generation."""
    if intent.kind not in OF_THE_WATCHER:
        return memory
    return replace(memory, watcher=memory.watcher.heard(intent.generation, row.appended_ms))


def ends_loss(intent: Intent, memory: Memory) -> bool:
    """Whether the intent says that a lost broker is back."""
    return intent.kind is IntentKind.BROKER_JOINED and intent.broker in memory.liveness.gone


def refusal_letter(row: Row, refused: Refused) -> Row:
    """The dead letter of an intent's row."""
    return dead_letter(row, "refused-intent", "; ".join(refused.problems), refused.rule)


def find_outcome(cluster: ClusterState, intent: Intent, applied: Applied, now_ms: int) -> Told:
    """The outcome to publish of an intent that was just answered, and the memory that has it."""
    if applied.refused is not None:
        rule, problems = applied.refused
        return refuse(cluster.memory, intent, rule, problems, now_ms)
    return accept(cluster.memory, intent, applied.bundles, cluster.settings, now_ms)


def _existing(cluster: ClusterState, batch: Batch) -> Existing:
    """What exists, as far as the cluster knows."""
    # A job that starts from nothing reads old intents before the brokers' reports.
    starting = cluster.memory.round.number == 0
    return Existing(
        brokers=None if starting else lambda: cluster.brokers() | batch.snapshots.keys(),
        namespaces=lambda: {*cluster.namespaces},
        records=cluster.records,
    )


def take_snapshots(cluster: ClusterState, changed: Mapping[str, Row]) -> None:
    """Take the snapshots that changed, and the latest figures of those whose bundles did not."""
    for broker, row in changed.items():
        aside = None
        if broker not in cluster.memory.appended:
            aside = cluster.aside.pop(broker, None)
        if row.tag == Tag.SNAPSHOT:
            cluster.snapshots[broker] = row.payload
            cluster.latest.pop(broker, None)
            continue
        # Operator ① continues from what was set aside.
        if aside is not None:
            cluster.snapshots[broker] = aside
        cluster.latest[broker] = row.payload
    # Where a clock was set back, ① may still know a broker that is forgotten here. It is seen again
    # with its next snapshot.
    seen = {broker: row for broker, row in changed.items() if broker in cluster.snapshots}
    appended = {broker: row.appended_ms for broker, row in seen.items()}
    cluster.memory = replace(
        cluster.memory,
        appended=cluster.memory.appended | appended,
        paces=cluster.memory.paces | dict(_paces(cluster.memory, seen)),
    )


def _paces(memory: Memory, changed: Mapping[str, Row]) -> Iterator[tuple[str, Pace]]:
    for broker, row in changed.items():
        if broker in memory.appended:
            gap_ms = row.appended_ms - memory.appended[broker]
            # A batch may hold several reports of a broker: a backlog is no silence.
            pace = learn_pace(memory.paces.get(broker), gap_ms, max(row.accepted, 1))
            if pace is not None:
                yield broker, pace
