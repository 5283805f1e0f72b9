"""Applies a batch's rows to a cluster's state.

Intents change the settings and what is known about brokers; ownership changes replace records and
end moves in flight; a snapshot replaces the broker's previous one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from trimtab.cluster.existing import Existing
from trimtab.cluster.intents.apply import Applied, Refused, apply_intent
from trimtab.cluster.outcomes import Told, accept, refuse
from trimtab.cluster.pending_intents import is_declined, note_changes
from trimtab.cluster.plans.progress import note_landed
from trimtab.cluster.state import ClusterState
from trimtab.health.unsettled import note_records
from trimtab.model import namespace_of, within
from trimtab.ownership import Event, State
from trimtab.review.ledger import time_handovers
from trimtab.state.in_flight import has_landed
from trimtab.state.memory import Memory
from trimtab.state.pace import Pace, learn_pace
from trimtab.tiling import flaws
from trimtab.wire.columns import pack
from trimtab.wire.control import Intent, IntentKind, decode_intent
from trimtab.wire.ownership import Change, Record, decode_change
from trimtab.wire.rows import Intake, Row, Tag, dead_letter, json_row, parse_rows

_TOLD: Final = 100
"""Declined splits of a batch that are told: more say nothing new."""


class Batch(NamedTuple):
    """The rows of one batch, parsed."""

    intents: list[tuple[Intent, Row]]
    """Each with its row, in the order to apply them."""
    changes: list[Change]
    reports: list[Row]
    """A row for each broker that reported, with its snapshot if that changed."""
    snapshots: dict[str, Row]
    """Those with a changed snapshot, by broker."""
    letters: list[Row]
    """The dead letters of operator ①, then those of the records that do not parse."""
    has_input: bool
    """Whether there is anything but operator ①'s dead letters."""


def parse_batch(rows: Iterable[Row]) -> Batch:
    """Sort and parse a batch's rows."""
    by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
    for row in rows:
        by_tag[row.tag].append(row)
    intents, letters = list[tuple[Intent, Row]](), by_tag[Tag.DEAD_LETTER]
    # The engine guarantees no order within a batch; LogAppendTime and the position give one.
    for row in sorted(by_tag[Tag.INTENT], key=_order):
        parsed, rejected = parse_rows([row], decode_intent)
        intents += [(intent, row) for intent in parsed]
        letters += rejected
    # A tombstone only serves compaction; the change before it says what was removed.
    written = [row for row in by_tag[Tag.CHANGE] if row.payload]
    changes, rejected = parse_rows(written, decode_change)
    reports = by_tag[Tag.SNAPSHOT]
    return Batch(
        intents=intents,
        changes=changes,
        reports=reports,
        snapshots={row.subject: row for row in reports if row.payload},
        letters=letters + rejected,
        has_input=bool(reports or by_tag[Tag.INTENT] or by_tag[Tag.CHANGE]),
    )


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


def take_changes(cluster: ClusterState, changes: Collection[Change], now_ms: int) -> None:
    """Apply a batch's ownership changes; ``now_ms`` is the batch timestamp."""
    touched, believed = _newer_changes(cluster, changes)
    newer = {change.bundle: change.record for change, _ in believed}
    declined = {
        change.bundle: change.record.owner or ""
        for change, before in believed
        if is_declined(change, before)
    }
    children = cluster.memory.round.halves | {
        change.bundle: change.record.since
        for change, _ in believed
        if change.event is Event.RETIRE and change.record.state is State.OWNED
    }
    _store_records(cluster, touched)
    settings = cluster.settings
    children = _without_merged(children, touched) if settings.split.unload_children else {}
    flying = cluster.memory.in_flight.items()
    in_flight = {b: f for b, f in flying if b not in newer or not has_landed(f, newer[b])}
    ledger = time_handovers(cluster.memory.round.ledger, changes)
    state = replace(cluster.memory.round, halves=children, ledger=ledger)
    whole = [
        f"{bundle}: {owner} found nothing to split; its log says why"
        for bundle, owner in islice(declined.items(), _TOLD)
    ]
    problems = [*cluster.memory.problems, *whole]
    cluster.memory = replace(cluster.memory, in_flight=in_flight, round=state, problems=problems)
    cluster.tell(note_changes(cluster.name, cluster.memory, newer, declined, now_ms))
    cluster.memory = note_landed(cluster.memory, newer, declined)
    if newer and not settings.round.observe_only:
        cluster.memory = note_records(cluster.memory, newer, settings, now_ms)


def _newer_changes(
    cluster: ClusterState, changes: Collection[Change]
) -> tuple[dict[str, dict[str, Record]], list[tuple[Change, Record | None]]]:
    """The records of the namespaces concerned, by namespace, and the changes that are newer than
    the record known before, each with that."""
    touched: dict[str, dict[str, Record]] = {}
    newer: list[tuple[Change, Record | None]] = []
    # A bundle's end and its removal may arrive in one batch, in any order.
    for change in sorted(changes, key=lambda change: change.pruned):
        namespace = namespace_of(change.bundle)
        if namespace not in touched:
            touched[namespace] = cluster.records(namespace)
        known = touched[namespace].get(change.bundle)
        if change.pruned:
            if known is not None and known.epoch <= change.record.epoch:
                del touched[namespace][change.bundle]
        elif known is None or change.record.epoch > known.epoch:
            touched[namespace][change.bundle] = change.record
            newer.append((change, known))
    return touched, newer


def _store_records(cluster: ClusterState, touched: Mapping[str, dict[str, Record]]) -> None:
    flawed, sizes = dict(cluster.memory.flawed), dict(cluster.memory.sizes)
    for namespace, records in touched.items():
        cluster.namespaces[namespace] = pack(records)
        standing = [b for b, record in records.items() if record.state is not State.DELETED]
        flawed[namespace] = flaws(standing)
        sizes[namespace] = len(standing)
    flawed = {namespace: found for namespace, found in flawed.items() if found}
    cluster.memory = replace(cluster.memory, flawed=flawed, sizes=sizes)


def take_snapshots(cluster: ClusterState, changed: Mapping[str, Row]) -> None:
    """Replace the snapshots of the brokers whose snapshot changed."""
    for broker, row in changed.items():
        cluster.snapshots[broker] = row.payload
        if broker not in cluster.memory.appended:
            cluster.aside.pop(broker, None)
    appended = {broker: row.appended_ms for broker, row in changed.items()}
    cluster.memory = replace(
        cluster.memory,
        appended=cluster.memory.appended | appended,
        paces=cluster.memory.paces | dict(_paces(cluster.memory, changed)),
    )


def _paces(memory: Memory, changed: Mapping[str, Row]) -> Iterator[tuple[str, Pace]]:
    for broker, row in changed.items():
        if broker in memory.appended:
            gap_ms = row.appended_ms - memory.appended[broker]
            # A batch may hold several reports of a broker: a backlog is no silence.
            pace = learn_pace(memory.paces.get(broker), gap_ms, max(row.accepted, 1))
            if pace is not None:
                yield broker, pace


def _without_merged(
    born: Mapping[str, int], touched: Mapping[str, Mapping[str, Record]]
) -> dict[str, int]:
    """The entries of ``born`` (bundle to time of birth) that are not known to result from a merge.

    The parts of a merge lie within the merged bundle and ended at the moment it began. The journal
    keeps each bundle on its own partition, so the ends may be read before or after the beginning,
    in this batch or another.
    """
    return {
        bundle: since
        for bundle, since in born.items()
        if not any(
            record.state is State.DELETED and record.since == since and within(bundle, part)
            for part, record in touched.get(namespace_of(bundle), {}).items()
        )
    }


def _order(row: Row) -> tuple[int, str, int]:
    place, offset = row.subject.rsplit("/", 1)
    return row.appended_ms, place, int(offset)
