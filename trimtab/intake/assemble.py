"""Assembles a view from snapshots and ownership records.

Ownership is read from records; a report only gives a bundle's load. Where the two disagree (normal
during a hand-over) the row is left out, so a broker that claims others' bundles does not change
them. While observing only there are no records, and the newest report of a bundle is believed, as
it is for a bundle without an owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from trimtab.intake.snapshot import Snapshot
from trimtab.intake.view_columns import Rows, brokers_of, bundles_of
from trimtab.model import NO_EPOCH, namespace_of
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.view import Bundles, View, is_monitoring
from trimtab.wire.ownership import Record

FREE = Record(state=State.FREE, epoch=NO_EPOCH)
"""The state of a bundle without a record."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """The known ownership of a cluster's bundles."""

    records: Mapping[str, Record]
    broken: frozenset[str] = frozenset()
    """Namespaces whose records overlap or leave a hole."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How many bundles each namespace has."""
    in_flight: Mapping[str, str] = field(default_factory=dict)
    """Bundle to destination, for changes issued but not yet journalled."""
    gone: Collection[str] = frozenset()
    """Lost brokers: their last reports give their bundles' load, nothing else."""


def assemble(
    cluster: str, snapshots: Sequence[Snapshot], holdings: Holdings | None
) -> tuple[View, Counter[Rule]]:
    """The view of live brokers, and how many bundles each rule excludes.

    ``holdings`` is None while observing only. A snapshot's brokers and bundles need not be sorted
    by the caller; equal inputs in any order give equal views.
    """
    brokers = sorted(snapshots, key=lambda snapshot: snapshot.broker)
    rows, obstacles = _reported(brokers) if holdings is None else _recorded(brokers, holdings)
    bundles = bundles_of(brokers, rows)
    records = {} if holdings is None else holdings.records
    view = View(
        cluster=cluster,
        brokers=brokers_of(brokers),
        bundles=bundles,
        # The same column, not a copy, if nothing is in flight.
        intended=bundles.owner if rows.intended == rows.owner else np.array(rows.intended),
        records=records,
        sizes=_reported_sizes(bundles) if holdings is None else holdings.sizes,
        splitting=frozenset(b for b, r in records.items() if r.state is State.SPLITTING),
    )
    return view, obstacles


def _reported_sizes(bundles: Bundles) -> dict[str, int]:
    counts = np.bincount(bundles.namespace, minlength=len(bundles.namespaces)).tolist()
    return dict(zip(bundles.namespaces, counts, strict=True))


def _recorded(brokers: Sequence[Snapshot], holdings: Holdings) -> tuple[Rows, Counter[Rule]]:
    rows, obstacles, place = Rows(), Counter[Rule](), 0
    row_of = {snapshot.broker: row for row, snapshot in enumerate(brokers)}
    records = holdings.records
    # Rarely needed: few bundles have no owner.
    newest = cache(lambda: _newest(brokers, lambda b: records.get(b, FREE).owner is None))
    for row, snapshot in enumerate(brokers):
        for bundle in snapshot.bundles:
            record = records.get(bundle, FREE)
            # One report of an unowned bundle is believed: no bundle is in a view twice.
            if (record.owner or newest()[bundle][1]) == snapshot.broker:
                obstacle = _obstacle(bundle, record, holdings)
                destination = holdings.in_flight.get(bundle, record.destination)
                _append(rows, (place, row, bundle), obstacle)
                rows.intended.append(row_of.get(destination or "", row))
                if obstacle is not None:
                    obstacles[obstacle] += 1
            elif snapshot.broker not in holdings.gone:
                obstacles[Rule.CONFLICT] += 1
            place += 1
    return rows, obstacles


def _append(rows: Rows, where: tuple[int, int, str], obstacle: Rule | None) -> None:
    place, row, bundle = where
    rows.at.append(place)
    rows.owner.append(row)
    rows.names.append(bundle)
    rows.movable.append(obstacle is None)


def _obstacle(bundle: str, record: Record, holdings: Holdings) -> Rule | None:
    """Why the round must not move a bundle although its reporter may own it."""
    if is_monitoring(bundle):
        return Rule.NOT_MOVABLE
    if record.state is State.FREE:
        return Rule.UNOWNED
    if record.owner in holdings.gone:
        return Rule.OWNER_LOST
    if record.state is not State.OWNED or bundle in holdings.in_flight:
        return Rule.IN_FLIGHT
    if holdings.broken and namespace_of(bundle) in holdings.broken:
        return Rule.BROKEN_NAMESPACE
    return None


def _reported(brokers: Sequence[Snapshot]) -> tuple[Rows, Counter[Rule]]:
    newest = _newest(brokers)
    rows, obstacles, place = Rows(), Counter[Rule](), 0
    for row, snapshot in enumerate(brokers):
        for bundle in snapshot.bundles:
            if newest[bundle][1] == snapshot.broker:
                obstacle = Rule.NOT_MOVABLE if is_monitoring(bundle) else None
                _append(rows, (place, row, bundle), obstacle)
                rows.intended.append(row)
                if obstacle is not None:
                    obstacles[obstacle] += 1
            else:
                obstacles[Rule.CONFLICT] += 1
            place += 1
    return rows, obstacles


def _newest(
    brokers: Sequence[Snapshot], wanted: Callable[[str], bool] = lambda _: True
) -> dict[str, tuple[int, str]]:
    """Bundle to its newest report: when that was appended, and its broker."""
    newest: dict[str, tuple[int, str]] = {}
    for snapshot in brokers:
        for bundle in snapshot.bundles:
            if wanted(bundle):
                report = (snapshot.appended_ms, snapshot.broker)
                newest[bundle] = max(newest.get(bundle, report), report)
    return newest
