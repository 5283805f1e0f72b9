"""What the job's log says of a query's end."""

from __future__ import annotations

from uuid import UUID

from pyspark.sql.streaming.listener import QueryTerminatedEvent
from structlog.testing import capture_logs

from sinks.exposition import Exposition
from streaming.metrics.progress import ProgressListener
from streaming.watchdog import Progress

ERROR = (
    "org.apache.spark.SparkException: Job aborted.\n\tat org.apache.spark.Job.run(Job.scala:303)"
)


def test_a_query_that_ended_tells_its_cause_without_the_stack() -> None:
    listener = ProgressListener(Exposition(), Progress())
    with capture_logs() as said:
        for error in (ERROR, None):
            listener.onQueryTerminated(QueryTerminatedEvent(UUID(int=1), UUID(int=2), error, None))
    assert [line["error"] for line in said] == [
        "org.apache.spark.SparkException: Job aborted.",
        None,
    ]
