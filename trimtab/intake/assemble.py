"""Assembles a view from snapshots and ownership records.

Ownership is read from records; a report only gives a bundle's load. Where the two disagree (normal
during a hand-over) the row is left out, so a broker that claims others' bundles does not change
them. While observing only there are no records, and the newest report of a bundle is believed, as
it is for a bundle without an owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np

from trimtab.intake.snapshot import Snapshot
from trimtab.intake.view_columns import Rows, brokers_of, bundles_of
from trimtab.model import NO_EPOCH, namespace_of
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.view import MONITORING_PREFIXES, Bundles, View, is_monitoring
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
    columns = rows.columns()
    bundles = bundles_of(brokers, rows.names, columns)
    records = {} if holdings is None else holdings.records
    view = View(
        cluster=cluster,
        brokers=brokers_of(brokers),
        bundles=bundles,
        intended=columns.intended,
        records=records,
        sizes=_reported_sizes(bundles) if holdings is None else holdings.sizes,
        splitting=frozenset(b for b, r in records.items() if r.state is State.SPLITTING),
    )
    return view, obstacles


def _reported_sizes(bundles: Bundles) -> dict[str, int]:
    counts = np.bincount(bundles.namespace, minlength=len(bundles.namespaces)).tolist()
    return dict(zip(bundles.namespaces, counts, strict=True))


def _recorded(brokers: Sequence[Snapshot], holdings: Holdings) -> tuple[Rows, Counter[Rule]]:
    rows, obstacles, start = Rows(), Counter[Rule](), 0
    row_of = {snapshot.broker: row for row, snapshot in enumerate(brokers)}
    records = holdings.records
    # Rarely needed: few bundles have no owner.
    newest = cache(lambda: _newest(brokers, lambda b: records.get(b, FREE).owner is None))
    for row, snapshot in enumerate(brokers):
        bundles = snapshot.bundles
        for first, end, alone in _runs(len(bundles), _unsettled(snapshot, bundles, holdings)):
            if not alone:
                rows.extend(start + first, row, bundles[first:end])
                continue
            bundle = bundles[first]
            record = records.get(bundle, FREE)
            # One report of an unowned bundle is believed: no bundle is in a view twice.
            if (record.owner or newest()[bundle][1]) == snapshot.broker:
                obstacle = _obstacle(bundle, record, holdings)
                destination = holdings.in_flight.get(bundle, record.destination)
                intended = row_of.get(destination or "", row)
                rows.append(start + first, row, bundle, intended, movable=obstacle is None)
                if obstacle is not None:
                    obstacles[obstacle] += 1
            elif snapshot.broker not in holdings.gone:
                obstacles[Rule.CONFLICT] += 1
        start += len(bundles)
    return rows, obstacles


def _runs(size: int, alone: Iterable[int]) -> Iterator[tuple[int, int, bool]]:
    """Places 0 to ``size`` in runs: first and end, and whether it is one of ``alone``. These are
    ascending, and each is a run of its own."""
    first = 0
    for place in alone:
        if first < place:
            yield first, place, False
        yield place, place + 1, True
        first = place + 1
    if first < size:
        yield first, size, False


def _unsettled(snapshot: Snapshot, bundles: Sequence[str], holdings: Holdings) -> Iterable[int]:
    """The places of all that are not simply owned by their reporter: few of a million are, and only
    they are looked at one by one."""
    broker = snapshot.broker
    flying = not holdings.in_flight.keys().isdisjoint(bundles)
    if holdings.broken or broker in holdings.gone or flying:
        return range(len(bundles))
    unsettled = [
        place
        for place, record in enumerate(map(holdings.records.get, bundles))
        if record is None
        or record.owner != broker
        or record.state is not State.OWNED
        or record.destination
    ]
    return sorted({*unsettled, *_monitoring(snapshot, bundles)})


def _monitoring(snapshot: Snapshot, bundles: Sequence[str]) -> list[int]:
    """The places of monitoring bundles."""
    if not any(prefix in snapshot.names for prefix in MONITORING_PREFIXES):
        return []
    return [place for place, bundle in enumerate(bundles) if is_monitoring(bundle)]


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
    rows, obstacles, start = Rows(), Counter[Rule](), 0
    names = [snapshot.bundles for snapshot in brokers]
    twice = _repeated(names)
    newest = _newest(brokers, twice.__contains__) if twice else {}
    for row, (snapshot, bundles) in enumerate(zip(brokers, names, strict=True)):
        odd = {*_monitoring(snapshot, bundles)}
        if not twice.isdisjoint(bundles):
            odd.update(place for place, bundle in enumerate(bundles) if bundle in twice)
        for first, end, alone in _runs(len(bundles), sorted(odd)):
            if not alone:
                rows.extend(start + first, row, bundles[first:end])
                continue
            bundle = bundles[first]
            if bundle in newest and newest[bundle][1] != snapshot.broker:
                obstacles[Rule.CONFLICT] += 1
                continue
            movable = not is_monitoring(bundle)
            rows.append(start + first, row, bundle, row, movable=movable)
            if not movable:
                obstacles[Rule.NOT_MOVABLE] += 1
        start += len(bundles)
    return rows, obstacles


def _repeated(names: Sequence[Sequence[str]]) -> set[str]:
    """The bundles that more than one snapshot has; ``names``: those of each."""
    if len(set(chain.from_iterable(names))) == sum(map(len, names)):
        return set()
    return {bundle for bundle, times in Counter(chain.from_iterable(names)).items() if times > 1}


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
