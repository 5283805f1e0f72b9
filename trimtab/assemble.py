"""Snapshots and ownership records become one view.

Ownership is read from records; a report only says what load a bundle carries. Where the two
disagree (normal during a hand-over) the row is left out. While observing only there are no records,
and the newest report of a bundle is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.model import NO_EPOCH, namespace_of
from trimtab.names import PackedNames, ranges_of
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.snapshot import Snapshot
from trimtab.view import (
    CACHE,
    CACHE_STEP,
    Brokers,
    Bundles,
    Counts,
    Ints,
    View,
    is_monitoring,
    namespaces_of,
)
from trimtab.wire.ownership import Record

T = TypeVar("T", bound=np.generic)

_MOST: Final = 2**31 - 1

FREE = Record(state=State.FREE, epoch=NO_EPOCH)
"""What a bundle without a record is."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is known of ownership."""

    records: Mapping[str, Record]
    broken: frozenset[str] = frozenset()
    """Namespaces whose records overlap or leave a hole."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How many bundles each namespace has."""
    in_flight: Mapping[str, str] = field(default_factory=dict)
    """Bundle to destination, for moves issued but not yet journalled."""


@dataclass(slots=True)
class _Rows:
    """The columns being gathered; ``at`` is the row's place in the concatenated snapshots."""

    at: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    intended: list[int] = field(default_factory=list)
    movable: list[bool] = field(default_factory=list)


def assemble(
    cluster: str, snapshots: Sequence[Snapshot], holdings: Holdings | None
) -> tuple[View, Counter[Rule]]:
    """The view of live brokers, and how many bundles each rule holds back.

    ``holdings`` is None while observing only. A snapshot's brokers and bundles need not be sorted
    by the caller; equal inputs in any order give equal views.
    """
    brokers = sorted(snapshots, key=lambda snapshot: snapshot.broker)
    obstacles: Counter[Rule] = Counter()
    if holdings is None:
        rows = _reported(brokers, obstacles)
    else:
        rows = _recorded(brokers, holdings, obstacles)
    bundles = _bundles(brokers, rows)
    records = {} if holdings is None else holdings.records
    view = View(
        cluster=cluster,
        brokers=_brokers(brokers),
        bundles=bundles,
        # The same column, not an equal one, where nothing is in flight.
        intended=bundles.owner if rows.intended == rows.owner else np.array(rows.intended),
        records=records,
        sizes=_reported_sizes(bundles) if holdings is None else holdings.sizes,
        splitting=frozenset(b for b, r in records.items() if r.state is State.SPLITTING),
    )
    return view, obstacles


def _reported_sizes(bundles: Bundles) -> dict[str, int]:
    counts = np.bincount(bundles.namespace, minlength=len(bundles.namespaces)).tolist()
    return dict(zip(bundles.namespaces, counts, strict=True))


def _recorded(brokers: Sequence[Snapshot], holdings: Holdings, obstacles: Counter[Rule]) -> _Rows:
    rows, place = _Rows(), 0
    row_of = {snapshot.broker: row for row, snapshot in enumerate(brokers)}
    for row, snapshot in enumerate(brokers):
        for bundle in snapshot.bundles:
            record = holdings.records.get(bundle, FREE)
            if record.owner in (snapshot.broker, None):
                obstacle = _obstacle(bundle, record, holdings)
                destination = holdings.in_flight.get(bundle, record.destination)
                _append(rows, (place, row, bundle), obstacle)
                rows.intended.append(row_of.get(destination or "", row))
                if obstacle is not None:
                    obstacles[obstacle] += 1
            else:
                obstacles[Rule.CONFLICT] += 1
            place += 1
    return rows


def _append(rows: _Rows, where: tuple[int, int, str], obstacle: Rule | None) -> None:
    place, row, bundle = where
    rows.at.append(place)
    rows.owner.append(row)
    rows.names.append(bundle)
    rows.movable.append(obstacle is None)


def _obstacle(bundle: str, record: Record, holdings: Holdings) -> Rule | None:
    """Why the round must leave a bundle that its reporter may well own."""
    if is_monitoring(bundle):
        return Rule.NOT_MOVABLE
    if record.state is State.FREE:
        return Rule.UNOWNED
    if record.state is not State.OWNED or bundle in holdings.in_flight:
        return Rule.IN_FLIGHT
    if holdings.broken and namespace_of(bundle) in holdings.broken:
        return Rule.BROKEN_NAMESPACE
    return None


def _reported(brokers: Sequence[Snapshot], obstacles: Counter[Rule]) -> _Rows:
    newest: dict[str, tuple[int, str]] = {}
    for snapshot in brokers:
        for bundle in snapshot.bundles:
            said = (snapshot.appended_ms, snapshot.broker)
            newest[bundle] = max(newest.get(bundle, said), said)
    rows, place = _Rows(), 0
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
    return rows


def _brokers(brokers: Sequence[Snapshot]) -> Brokers:
    nothing = np.zeros((0,))
    return Brokers(
        names=tuple(s.broker for s in brokers),
        resources=np.array([s.resources for s in brokers]).T if brokers else nothing.reshape(5, 0),
        traffic=np.array([s.traffic for s in brokers]).T if brokers else nothing.reshape(4, 0),
        topics=np.array([s.topics for s in brokers], np.int64),
        listed=np.array([s.listed for s in brokers], np.int64),
        available=np.ones(len(brokers), np.bool_),
        averages=np.full((2, len(brokers)), np.nan),
        reported_ms=np.array([s.appended_ms for s in brokers], np.int64),
        relieved_ms=np.zeros(len(brokers), np.int64),
        versions=tuple(s.version for s in brokers),
        load_managers=tuple(s.load_manager for s in brokers),
        persistent=np.array([s.persistent for s in brokers], np.bool_),
    )


def _bundles(brokers: Sequence[Snapshot], rows: _Rows) -> Bundles:
    # Where nothing is left out there is nothing to pick, and no column of places to keep.
    left_out = len(rows.at) < sum(len(s.shown) for s in brokers)
    at = np.array(rows.at, np.int64) if left_out else None
    shown = _gathered([s.shown[np.newaxis] for s in brokers], at, np.zeros((1, 0), np.bool_))[0]
    namespace, namespaces = namespaces_of(rows.names)
    ranges = _gathered([ranges_of(s.names) for s in brokers], at, np.zeros((2, 0), np.uint32))
    none = np.zeros((4, 0))
    return Bundles(
        names=PackedNames(namespaces, namespace, ranges),
        namespace=namespace,
        namespaces=namespaces,
        owner=np.array(rows.owner, np.int64),
        short=_gathered([s.short for s in brokers], at, none),
        long=_gathered([s.long for s in brokers], at, none),
        reported=cache(lambda: _gathered([s.stats for s in brokers], at, none)),
        counts=_gathered([_counts(s) for s in brokers], at, none.astype(np.int32)),
        movable=np.array(rows.movable, np.bool_) & shown,
    )


def _gathered(parts: Sequence[NDArray[T]], at: Ints | None, none: NDArray[T]) -> NDArray[T]:
    """The columns of all snapshots side by side, and of these the ones ``at`` some places."""
    whole = np.hstack([none, *parts])
    return whole if at is None else whole[:, at]


def _counts(snapshot: Snapshot) -> Counts:
    counts = snapshot.counts.copy()
    counts[CACHE] //= CACHE_STEP
    return np.minimum(counts, _MOST).astype(np.int32)
