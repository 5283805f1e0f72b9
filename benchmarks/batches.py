"""Runs a streaming query over a full topic and keeps each batch's time."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

Sink = Callable[[DataFrame, int], None]
Progress = dict[str, Any]

WARM_UP: Final = 3
"""First batches of a query that do not count: workers start, code is compiled, state is opened."""
_POLL_SECONDS: Final = 0.3
_PATIENCE_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of one pass after the warm-up."""

    seconds: list[float]
    """Trigger to commit, of each."""
    stages: dict[str, list[float]]
    """Seconds of each of Spark's own stages (``durationMs``)."""
    rows: list[int]
    """Records read, of each."""
    cpu: float
    """CPU seconds a record: driver, JVM and Python workers together."""


def drain(frame: DataFrame, records: int, sink: Sink | None, folder: Path) -> Batches:
    """One pass over ``records`` records in batches back to back; without a sink into ``noop``."""
    checkpoint = tempfile.mkdtemp(dir=folder)
    return drain_into(frame, records, sink, checkpoint)


def drain_into(frame: DataFrame, records: int, sink: Sink | None, checkpoint: str) -> Batches:
    """`drain` with the checkpoint's path given, for a sink that must know it."""
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    writer = writer.foreachBatch(sink) if sink else writer.format("noop")
    others = {child.pid for child in psutil.Process().children() if child.name() != "java"}
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        first, before = _wait(query, lambda done, _: done > WARM_UP, others)
        last, after = _wait(query, lambda _, read: read >= records, others)
        progress = [p for p in _recent(query) if p["records"]]
    finally:
        query.stop()
    counted = progress[WARM_UP:]
    if not counted:
        raise RuntimeError(f"{records} records gave {len(progress)} batches, all of them warm-up")
    stages = {name for batch in counted for name in batch["durationMs"]}
    return Batches(
        seconds=[batch["durationMs"]["triggerExecution"] / 1000 for batch in counted],
        stages={
            stage: [batch["durationMs"].get(stage, 0) / 1000 for batch in counted]
            for stage in sorted(stages)
        },
        rows=[batch["records"] for batch in counted],
        cpu=(after - before) / max(1, last - first),
    )


def _wait(
    query: StreamingQuery, until: Callable[[int, int], bool], others: Collection[int]
) -> tuple[int, float]:
    """Wait for a number of batches or of records; the records read and the CPU seconds used."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        progress = [p for p in _recent(query) if p["records"]]
        read = sum(p["records"] for p in progress)
        if until(len(progress), read):
            return read, cpu_seconds(others)
        if (error := query.exception()) is not None:
            raise RuntimeError("the query failed") from error
        if time.monotonic() > deadline:
            raise RuntimeError(f"the query read {read} records in {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def _recent(query: StreamingQuery) -> list[Progress]:
    """Spark's account of each batch, with its ``records``: a row of a source may be many."""
    told = [json.loads(progress.json) for progress in query.recentProgress]
    ends = [sum(_read_by(source) for source in each["sources"]) for each in told]
    counts = map(sub, ends, [0, *ends])
    return [{**each, "records": count} for each, count in zip(told, counts, strict=True)]


def _read_by(source: Progress) -> int:
    """Records of the source's topics before its end; theirs begin at 0."""
    topics = (source["endOffset"] or {}).values()
    return sum(sum(partitions.values()) for partitions in topics)


def cpu_seconds(others: Collection[int]) -> float:
    """Used by this process and all below it, less those of ``others``."""
    total = 0.0
    for process in [psutil.Process(os.getpid()), *psutil.Process().children(recursive=True)]:
        try:
            if process.pid not in others:
                # A worker that ended counts among its daemon's children from then on.
                total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total
