"""What the job shows of Spark's progress, and what its log says of a query's end."""

from __future__ import annotations

import json
from uuid import UUID

from pyspark.sql.streaming.listener import QueryTerminatedEvent
from structlog.testing import capture_logs

from sinks.exposition import Exposition
from streaming.metrics.progress import JsonListener, ProgressListener
from streaming.watchdog import Progress

TOPIC, CONTROL = "trimtab.load-reports", "trimtab.control"
PROGRESS = {
    "durationMs": {"addBatch": 700, "triggerExecution": 900},
    "stateOperators": [
        {"numRowsTotal": 1, "memoryUsedBytes": 10},
        {"numRowsTotal": 3, "memoryUsedBytes": 30},
    ],
    "sources": [
        {
            "startOffset": {TOPIC: {"0": 2}},
            "endOffset": {TOPIC: {"0": 7, "1": 5}},
            "latestOffset": {TOPIC: {"0": 9, "1": 5}},
            "numInputRows": 4,
        },
        {
            "startOffset": {CONTROL: {"0": 100}},
            "endOffset": {CONTROL: {"0": 200}},
            "latestOffset": {CONTROL: {"0": 200}},
            "numInputRows": 3,
        },
        {
            "startOffset": None,
            "endOffset": None,
            "latestOffset": "no JSON",
            "numInputRows": 0,
        },
    ],
}
"""What is read of what Spark says of a batch: a row of load reports is a parcel of several, and
compaction and transactions leave offsets of other topics without a record."""
ERROR = (
    "org.apache.spark.SparkException: Job aborted.\n\tat org.apache.spark.Job.run(Job.scala:303)"
)


class Event:
    """As the JVM has it."""

    def json(self) -> str:
        return json.dumps({"progress": PROGRESS})


def test_a_batch_is_shown_as_spark_tells_it() -> None:
    shown = Exposition()
    JsonListener(ProgressListener(shown, Progress())).onQueryProgress(Event())
    value = shown.registry.get_sample_value
    assert value("trimtab_batches_total") == 1
    assert value("trimtab_batch_stage_seconds", {"stage": "addBatch"}) == 0.7
    assert value("trimtab_input_records_total", {"topic": TOPIC}) == 10
    assert value("trimtab_input_records_total", {"topic": CONTROL}) == 3
    assert value("trimtab_input_lag_records", {"topic": TOPIC}) == 2
    assert value("trimtab_state_keys", {"operator": "broker"}) == 3
    assert value("trimtab_state_bytes", {"operator": "cluster"}) == 10


def test_a_query_that_ended_tells_its_cause_without_the_stack() -> None:
    listener = ProgressListener(Exposition(), Progress())
    with capture_logs() as said:
        for error in (ERROR, None):
            listener.onQueryTerminated(QueryTerminatedEvent(UUID(int=1), UUID(int=2), error, None))
    assert [line["error"] for line in said] == [
        "org.apache.spark.SparkException: Job aborted.",
        None,
    ]
