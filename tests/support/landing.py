"""Operator ② with simulated brokers whose moves land at once: a round is a call."""

from __future__ import annotations

from collections.abc import Mapping

from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel
from tests.support.clusters_by_rows import change_row, cluster, held
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire.columns import pack
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import encode
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

MINUTE_MS = 60_000


class Landing:
    """The same model and settings give the same rounds, one a minute."""

    def __init__(self, model: LoadModel, settings: Mapping[str, object]) -> None:
        self.cluster = cluster(settings)
        self.now_ms = 0
        self.brokers = model.brokers
        self._brokers = {
            name: SimulatedBroker(model, row, model.owned_at_start(row), lambda: self.now_ms)
            for row, name in enumerate(model.brokers)
        }
        self._snapshots: dict[str, Snapshot] = {}
        self._counter = 1
        self._news = [
            change_row(bundle, name)
            for name, broker in self._brokers.items()
            for bundle in broker.bundles()
        ]

    def round(self) -> RoundRecord:
        """Every broker reports, the cluster holds a round, and what it moves has moved."""
        self.now_ms += MINUTE_MS
        self.cluster.receive([*self._reports(), *self._news], self.now_ms)
        record = held(self.cluster, self.now_ms)
        self._counter += 1
        self._news = []
        for move in record.moves:
            self._brokers[move.source].unload(move.bundle)
            self._brokers[move.destination].load(move.bundle)
            self._news.append(change_row(move.bundle, move.destination, self._counter))
        return record

    def range(self) -> float:
        """True usage of the hottest less that of the coldest broker."""
        usages = [broker.usage() for broker in self._brokers.values()]
        return max(usages) - min(usages)

    def _reports(self) -> list[Row]:
        rows = []
        for name, broker in self._brokers.items():
            report = decode(encode(broker.load_report()))
            arrival = Arrival(self.now_ms, broker.started_ms, self.now_ms, report)
            told, _ = fold(self._snapshots.get(name), name, [arrival], IntakeSettings())
            assert told is not None
            self._snapshots[name] = told
            rows.append(Row("c", Tag.SNAPSHOT, name, pack(told), self.now_ms, accepted=1))
        return rows
