"""What Spark's Python workers hold beyond what they share with the process they fork from."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from sinks.kafka.publisher import Outgoing, Publisher
from tests.support.reports import bundle
from tests.support.running import Running
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

FEW = 3000
"""Objects. pandas alone has 28,000, over which a worker's collector would go after each task."""
TASKS = 8


def count_own_objects(spark: SparkSession) -> dict[int, int]:
    """Worker to the objects that it made or imported itself."""

    # Inside: a worker would import this module, and the tests' libraries with it.
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            figures = {"worker": [os.getpid()], "own": [len(gc.get_objects())]}
            yield pa.RecordBatch.from_pydict(figures)

    counted = spark.range(TASKS, numPartitions=TASKS).mapInArrow(count, "worker long, own long")
    return {row.worker: row.own for row in counted.collect()}


def test_workers_have_few_objects_of_their_own_after_a_batch(
    spark: SparkSession, running: Running, publisher: Publisher
) -> None:
    report = encode(LocalBrokerData(last_stats={bundle(0): BundleStats(topics=1)}))
    with running:
        publisher.publish([Outgoing(keys.LOAD_REPORTS, "workers/b:1", report)])
        running.await_metric(1, "trimtab_rounds_total", cluster="workers")
    own = count_own_objects(spark)
    assert max(own.values()) < FEW, own
