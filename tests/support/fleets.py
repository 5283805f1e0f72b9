"""Operator ② with brokers that live, and the rounds of its batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.support.clusters_by_rows import change_row, cluster, rounds_in, snapshot_row
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row

EIGHTHS = [bundle(i, 8) for i in range(8)]
CALM = {
    "round.shedding": "threshold",
    "round.placement": "least-long-term-rate",
    "round.interval": 60.0,
    "round.move_deadline": 30.0,
}


def fleet(
    owners: Mapping[str, str], brokers: Iterable[str] = "abcd", **settings: object
) -> Cluster:
    """Brokers a:1, b:1 … that report, and bundles with their owners; its first batch is at 1000."""
    it = cluster(CALM | {name.replace("__", "."): value for name, value in settings.items()})
    rates: dict[str, dict[str, float]] = {f"{broker}:1": {} for broker in brokers}
    for name, owner in owners.items():
        rates[owner][name] = 100.0
    rows = [snapshot_row(broker, carried) for broker, carried in rates.items()]
    it.take([*rows, *(change_row(name, owner) for name, owner in owners.items())], 1000)
    return it


def two_each() -> Cluster:
    return fleet({name: f"{'abcd'[i // 2]}:1" for i, name in enumerate(EIGHTHS)})


def round_at(it: Cluster, now_ms: int, *rows: Row) -> RoundRecord:
    """The one round of a batch."""
    (record,) = rounds_in(it.take(rows, now_ms)[0])
    return record


def woken(it: Cluster, now_ms: int) -> RoundRecord:
    (record,) = rounds_in(it.wake(now_ms)[0])
    return record
