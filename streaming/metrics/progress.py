"""Spark's progress events as metrics."""

from __future__ import annotations

import json
import time
from typing import Any

import structlog
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from sinks.exposition import Exposition
from streaming.failure import cause_of
from streaming.watchdog import Progress
from trimtab.metrics import job as metrics

log = structlog.get_logger()


class ProgressListener(StreamingQueryListener):
    """Batch time and its stages, input, lag behind Kafka, size of state."""

    def __init__(self, shown: Exposition, progress: Progress) -> None:
        self._shown = shown
        self._progress = progress

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        log.info("query started", query=str(event.id), run=str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._progress.triggered()
        progress, shown = event.progress, self._shown
        stages = dict(progress.durationMs)
        shown.count(metrics.BATCHES)
        shown.observe(metrics.BATCH_SECONDS, stages.get("triggerExecution", 0) / 1000)
        shown.set(metrics.LAST_PROGRESS, time.time())
        for stage, millis in stages.items():
            shown.set(metrics.BATCH_STAGE, millis / 1000, stage)
        for source in progress.sources:
            self._show_source(source)
        # The cluster operator reads the broker operator's rows: Spark lists it first.
        for operator, state in zip(("cluster", "broker"), progress.stateOperators, strict=False):
            shown.set(metrics.STATE_KEYS, state.numRowsTotal, operator)
            shown.set(metrics.STATE_BYTES, state.memoryUsedBytes, operator)

    def _show_source(self, source: SourceProgress) -> None:
        ends, latest = _offsets(source.endOffset), _offsets(source.latestOffset)
        for topic, partitions in ends.items():
            self._shown.count(metrics.INPUT_RECORDS, topic, by=source.numInputRows)
            newest = latest.get(topic, partitions)
            lag = sum(newest.get(p, end) - end for p, end in partitions.items())
            self._shown.set(metrics.LAG, lag, topic)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: ARG002 - Spark's interface
        self._progress.triggered()
        self._shown.set(metrics.LAST_PROGRESS, time.time())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        error = event.exception and cause_of(event.exception)
        log.info("query ended", query=str(event.id), error=error)


def _offsets(text: str | None) -> dict[str, dict[str, int]]:
    # "null" before a source has offsets; not JSON at all in a repeated batch.
    value: Any = json.loads(text) if text and text.startswith("{") else {}
    return value if isinstance(value, dict) else {}
