"""Operator ②: collects a cluster's snapshots, intents and ownership, and runs its rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from streaming.query.memory_store import MemoryStore
from streaming.query.rows import spark_row
from streaming.query.state import COLUMNS, StoredMapping
from trimtab.cluster.operator import Cluster
from trimtab.intake.snapshot_pages import LATEST, SnapshotPages
from trimtab.settings import Settings
from trimtab.wire.rows import Row


class ClusterOperator(StatefulProcessor):
    """Keyed by cluster; rows without a cluster (bad keys) pass through."""

    def __init__(self, defaults: Settings) -> None:
        self._defaults = defaults

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._pages, self._namespaces, self._aside = (
            StoredMapping(handle.getMapState(name, *COLUMNS))
            for name in ("pages", "namespaces", "aside")
        )
        self._store = MemoryStore(self._pages)

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[SparkRow]:
        cluster = self._load(key[0])
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        out, due_ms = cluster.take((Row(*row) for row in rows), now_ms)
        if cluster.name:
            self._save(cluster, due_ms)
        yield from map(spark_row, out)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002 - Spark passes it by this name
    ) -> Iterator[SparkRow]:
        cluster = self._load(key[0])
        out, due_ms = cluster.wake(timerValues.getCurrentProcessingTimeInMs())
        if out:
            self._save(cluster, due_ms)
        yield from map(spark_row, out)

    def _save(self, cluster: Cluster, due_ms: int) -> None:
        if due_ms:
            self._handle.registerTimer(due_ms)
        self._store.save(cluster.memory, cluster.learnt)
        self._snapshots.save()
        self._latest.save()

    def _load(self, name: str) -> Cluster:
        memory, apart = self._store.load()
        self._snapshots = SnapshotPages(self._pages)
        self._latest = SnapshotPages(self._pages, LATEST)
        return Cluster(
            name,
            self._snapshots,
            self._namespaces,
            memory,
            self._defaults,
            self._aside,
            self._latest,
            recall=self._store.recall if apart else None,
        )

    def close(self) -> None:
        pass
