"""Spark's progress events as metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import structlog
from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from sinks.exposition import Exposition
from streaming.failure import cause_of
from streaming.watchdog import Progress
from trimtab.metrics import job as metrics
from trimtab.wire import keys

log = structlog.get_logger()


class JsonListener(JStreamingQueryListener):
    """Gets each batch's figures from the JVM as one JSON text. PySpark's own listener asks for each
    figure, and finds the end of a map by an exception: 1,200 calls, up to a second of CPU."""

    def __init__(self, listener: ProgressListener) -> None:
        super().__init__(listener)
        self._show = listener.show

    def onQueryProgress(self, event: Any) -> None:  # Any: a Java object.
        self._show(json.loads(event.json())["progress"])


class ProgressListener(StreamingQueryListener):
    """Batch time and its stages, input, lag behind Kafka, size of state."""

    def __init__(self, shown: Exposition, progress: Progress) -> None:
        self._shown = shown
        self._progress = progress

    @cached_property
    def _jlistener(self) -> Any:  # Any: a Java object.
        jvm: Any = SparkContext._jvm
        return jvm.PythonStreamingQueryListenerWrapper(JsonListener(self))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        log.info("query started", query=str(event.id), run=str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.show(json.loads(event.progress.json))

    def show(self, progress: Mapping[str, Any]) -> None:
        """A batch, in Spark's JSON."""
        self._progress.triggered()
        shown, stages = self._shown, progress["durationMs"]
        shown.count(metrics.BATCHES)
        shown.observe(metrics.BATCH_SECONDS, stages.get("triggerExecution", 0) / 1000)
        shown.set(metrics.LAST_PROGRESS, time.time())
        for stage, millis in stages.items():
            shown.set(metrics.BATCH_STAGE, millis / 1000, stage)
        for source in progress["sources"]:
            self._show_source(source)
        # The cluster operator reads the broker operator's rows: Spark lists it first.
        for operator, state in zip(("cluster", "broker"), progress["stateOperators"], strict=False):
            shown.set(metrics.STATE_KEYS, state["numRowsTotal"], operator)
            shown.set(metrics.STATE_BYTES, state["memoryUsedBytes"], operator)

    def _show_source(self, source: Mapping[str, Any]) -> None:
        ends, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        for topic, partitions in ends.items():
            self._shown.count(metrics.INPUT_RECORDS, topic, by=records_of(source))
            newest = latest.get(topic, partitions)
            lag = sum(newest.get(p, end) - end for p, end in partitions.items())
            self._shown.set(metrics.LAG, lag, topic)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: ARG002 - Spark's interface
        self._progress.triggered()
        self._shown.set(metrics.LAST_PROGRESS, time.time())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        error = event.exception and cause_of(event.exception)
        log.info("query ended", query=str(event.id), error=error)


def records_of(source: Mapping[str, Any]) -> int:
    """How many records a source read in a batch, by Spark's account of it."""
    start, end = (_offsets(source[name]) for name in ("startOffset", "endOffset"))
    if keys.LOAD_REPORTS not in start:
        return int(source["numInputRows"])
    # A row of this source is a parcel of many records.
    ends = end[keys.LOAD_REPORTS].items()
    return sum(at - start[keys.LOAD_REPORTS].get(partition, 0) for partition, at in ends)


def _offsets(said: object) -> dict[str, dict[str, int]]:
    # Null before a source has offsets; no object in a repeated batch.
    return said if isinstance(said, dict) else {}
