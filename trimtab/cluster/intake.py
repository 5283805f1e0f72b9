"""What arrives changes of a cluster's state.

Intents change the settings and what is known of brokers; changes of ownership replace records and
end moves in flight; snapshots replace their broker's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from trimtab.cluster.intents import apply_intent
from trimtab.cluster.state import ClusterState
from trimtab.health.repair import note_records
from trimtab.model import namespace_of, within
from trimtab.ownership import Event, State
from trimtab.review.ledger import time_handovers
from trimtab.state.in_flight import has_landed
from trimtab.tiling import flaws
from trimtab.wire.columns import pack
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rows import Intake, Row, Tag, json_row, parse_rows


def receive_rows(cluster: ClusterState, rows: Iterable[Row], now_ms: int) -> tuple[bool, list[Row]]:
    """Take a batch's rows; whether a snapshot changed, and the rows that go on to the sinks."""
    by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
    for row in rows:
        by_tag[row.tag].append(row)
    out = by_tag[Tag.DEAD_LETTER]
    # The engine promises no order within a batch; LogAppendTime and the position give one.
    for row in sorted(by_tag[Tag.INTENT], key=_order):
        for intent in parse_rows([row], Intent, out):
            _intend(cluster, intent, row.appended_ms, now_ms)
    # A tombstone is for compaction; the change before it says what was forgotten.
    told = [row for row in by_tag[Tag.CHANGE] if row.payload]
    _change(cluster, parse_rows(told, Change, out), now_ms)
    changed = _hear(cluster, by_tag[Tag.SNAPSHOT])
    if cluster.name and any(by_tag[tag] for tag in (Tag.SNAPSHOT, Tag.INTENT, Tag.CHANGE)):
        # Also where nothing was reported: a batch that changes the state must be seen by the
        # sinks, or nobody could run it again.
        out.append(intake_row(cluster, by_tag[Tag.SNAPSHOT]))
    return changed, out


def intake_row(cluster: ClusterState, rows: list[Row]) -> Row:
    """What the sinks are told of a batch's snapshots."""
    intake = Intake(
        cluster=cluster.name,
        accepted=sum(row.accepted for row in rows),
        duplicate=sum(row.duplicate for row in rows),
        old=sum(row.old for row in rows),
        newest_ms=max(cluster.memory.appended.values(), default=0),
    )
    return json_row(cluster.name, Tag.INTAKE, intake)


def _intend(cluster: ClusterState, intent: Intent, at_ms: int, now_ms: int) -> None:
    returns = (
        intent.kind is IntentKind.BROKER_JOINED and intent.broker in cluster.memory.liveness.gone
    )
    liveness = cluster.memory.liveness.recent(cluster.settings.flapping, now_ms)
    memory = replace(cluster.memory, liveness=liveness)
    cluster.memory = apply_intent(memory, intent, cluster.defaults, at_ms, now_ms)
    if intent.kind is IntentKind.READMIT and not _quarantined(cluster, intent.bundle):
        problem = f"intent {intent.id}: {intent.bundle} is not quarantined"
        cluster.memory = replace(memory, problems=[*memory.problems, problem])
    if returns:
        # What it said before it was lost says nothing of it now.
        cluster.set_aside(intent.broker)
        appended = {b: ms for b, ms in cluster.memory.appended.items() if b != intent.broker}
        cluster.memory = replace(cluster.memory, appended=appended)


def _quarantined(cluster: ClusterState, bundle: str) -> bool:
    record = cluster.records(namespace_of(bundle)).get(bundle)
    return record is not None and record.state is State.QUARANTINED


def _change(cluster: ClusterState, changes: Collection[Change], now_ms: int) -> None:
    touched: dict[str, dict[str, Record]] = {}
    news: dict[str, Record] = {}
    halves = dict(cluster.memory.round.halves)
    # A bundle's end and its removal may come in one batch, in any order.
    for change in sorted(changes, key=lambda change: change.pruned):
        namespace = namespace_of(change.bundle)
        if namespace not in touched:
            touched[namespace] = cluster.records(namespace)
        known = touched[namespace].get(change.bundle)
        if change.pruned:
            if known is not None and known.epoch <= change.record.epoch:
                del touched[namespace][change.bundle]
            continue
        if known is None or change.record.epoch > known.epoch:
            touched[namespace][change.bundle] = news[change.bundle] = change.record
            if change.event is Event.RETIRE and change.record.state is State.OWNED:
                halves[change.bundle] = change.record.since
    _tile(cluster, touched)
    settings = cluster.settings
    halves = _divided(halves, touched) if settings.split.unload_children else {}
    flying = cluster.memory.in_flight.items()
    in_flight = {b: f for b, f in flying if b not in news or not has_landed(f, news[b])}
    ledger = time_handovers(cluster.memory.round.ledger, changes)
    state = replace(cluster.memory.round, halves=halves, ledger=ledger)
    cluster.memory = replace(cluster.memory, in_flight=in_flight, round=state)
    if news and not settings.round.observe_only:
        cluster.memory = note_records(cluster.memory, news, settings, now_ms)


def _tile(cluster: ClusterState, touched: Mapping[str, dict[str, Record]]) -> None:
    flawed, sizes = dict(cluster.memory.flawed), dict(cluster.memory.sizes)
    for namespace, records in touched.items():
        cluster.namespaces[namespace] = pack(records)
        standing = [b for b, record in records.items() if record.state is not State.DELETED]
        flawed[namespace] = flaws(standing)
        sizes[namespace] = len(standing)
    flawed = {namespace: found for namespace, found in flawed.items() if found}
    cluster.memory = replace(cluster.memory, flawed=flawed, sizes=sizes)


def _hear(cluster: ClusterState, rows: Iterable[Row]) -> bool:
    changed = {row.subject: row for row in rows if row.payload}
    for broker, row in changed.items():
        cluster.snapshots[broker] = row.payload
        if broker not in cluster.memory.appended:
            cluster.aside.pop(broker, None)
    appended = {broker: row.appended_ms for broker, row in changed.items()}
    cluster.memory = replace(cluster.memory, appended=cluster.memory.appended | appended)
    return bool(changed)


def _divided(
    born: Mapping[str, int], touched: Mapping[str, Mapping[str, Record]]
) -> dict[str, int]:
    """Those of the bundles ``born``, and when, that are not known to be made of several.

    What was merged lies within what it became and ended in the moment in which that began. The
    journal has each bundle on a partition of its own: the ends may be read before the beginning or
    after it, in this batch or another.
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
