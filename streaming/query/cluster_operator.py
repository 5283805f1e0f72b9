"""Operator ②: collects a cluster's snapshots, intents and ownership, and runs its rounds."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping
from typing import Any

from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from streaming.query.memory_store import MemoryStore
from streaming.query.rows import spark_row
from streaming.query.state import STATE
from trimtab.cluster.operator import Cluster
from trimtab.settings import Settings
from trimtab.wire.rows import Row


class ClusterOperator(StatefulProcessor):
    """Keyed by cluster; rows without a cluster (bad keys) pass through."""

    def __init__(self, defaults: Settings) -> None:
        self._defaults = defaults

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._store = MemoryStore(
            handle.getValueState("memory", STATE),
            _Mapping(handle.getMapState("pages", "page string", "payload binary")),
        )
        self._snapshots = handle.getMapState("snapshots", "broker string", "payload binary")
        self._namespaces = handle.getMapState("namespaces", "namespace string", "payload binary")
        self._aside = handle.getMapState("aside", "broker string", "payload binary")

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
        self._store.save(cluster.memory, whole=cluster.recall is None)

    def _load(self, name: str) -> Cluster:
        memory, apart = self._store.load()
        return Cluster(
            name,
            _Mapping(self._snapshots),
            _Mapping(self._namespaces),
            memory,
            self._defaults,
            _Mapping(self._aside),
            recall=self._store.recall if apart else None,
        )

    def close(self) -> None:
        pass


class _Mapping(MutableMapping[str, bytes]):
    """Wraps Spark's MapState as the mapping that the core uses."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> bytes:
        value = self._state.getValue((key,))
        if value is None:
            raise KeyError(key)
        return bytes(value[0])

    def __setitem__(self, key: str, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def __delitem__(self, key: str) -> None:
        if not self._state.containsKey((key,)):
            raise KeyError(key)
        self._state.removeKey((key,))

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())

    def items(self) -> ItemsView[str, bytes]:
        # One scan instead of a round trip to the JVM per key.
        return {key[0]: bytes(value[0]) for key, value in self._state.iterator()}.items()
