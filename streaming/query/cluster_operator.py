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

from streaming.query.local_copies import LocalCopies
from streaming.query.memory_store import MemoryStore
from streaming.query.rows import spark_row
from streaming.query.state import COLUMNS, StoredMapping
from trimtab.cluster.operator import Cluster
from trimtab.settings import Settings
from trimtab.state.packed_pages import LATEST, NAMESPACES, PackedPages
from trimtab.wire.rows import Row


class ClusterOperator(StatefulProcessor):
    """Keyed by cluster; rows without a cluster (bad keys) pass through."""

    def __init__(self, defaults: Settings) -> None:
        self._defaults = defaults

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        # Earlier versions kept each namespace's records by themselves.
        self._pages, self._by_namespace, self._aside = (
            StoredMapping(handle.getMapState(name, *COLUMNS))
            for name in ("pages", "namespaces", "aside")
        )

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
        for paged in self._paged:
            paged.save()

    def _load(self, name: str) -> Cluster:
        copies = LocalCopies.of("clusters", name)
        self._store = MemoryStore(self._pages, copies)
        memory, apart = self._store.load()
        snapshots = PackedPages(self._pages, copies=copies)
        latest = PackedPages(self._pages, LATEST, copies=copies)
        namespaces = PackedPages(self._pages, NAMESPACES, self._by_namespace, copies)
        self._paged = snapshots, latest, namespaces
        return Cluster(
            name,
            snapshots,
            namespaces,
            memory,
            self._defaults,
            self._aside,
            latest,
            recall=self._store.recall if apart else None,
        )

    def close(self) -> None:
        pass
