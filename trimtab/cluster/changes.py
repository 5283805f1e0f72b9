"""Applies a batch's ownership changes: they replace records and end moves in flight."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from trimtab.cluster.pending_intents import is_declined, note_changes
from trimtab.cluster.plans.progress import note_landed
from trimtab.cluster.state import ClusterState
from trimtab.health.unsettled import note_records
from trimtab.model import namespace_of, within
from trimtab.ownership import Event, State
from trimtab.review.ledger import time_handovers
from trimtab.state.in_flight import has_landed
from trimtab.tiling import flaws
from trimtab.wire.columns import pack_small
from trimtab.wire.ownership import Change, Record

_TOLD: Final = 100
"""Declined splits of a batch that are told: more say nothing new."""


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
    """The records after the changes, by namespace, and the changes that were news.

    A change is news if its epoch is above that of the record known before; it comes with that one.
    """
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
        cluster.namespaces[namespace] = pack_small(records)
        standing = [b for b, record in records.items() if record.state is not State.DELETED]
        flawed[namespace] = flaws(standing)
        sizes[namespace] = len(standing)
    flawed = {namespace: found for namespace, found in flawed.items() if found}
    cluster.memory = replace(cluster.memory, flawed=flawed, sizes=sizes)


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
