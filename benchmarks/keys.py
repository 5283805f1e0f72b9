"""What a report costs operator ① where a batch has one report of each of many brokers, and where it
has fifteen of each of few.

Two topics are read in batches back to back into a no-op sink, each in one Spark session by several
queries in turn: `read` (Kafka alone), `from_json` (the same, parsed by Spark), `broker` (operator ①
with as good as a key for each broker) and `shard` (as the job runs it: `sources.shards`). The
figures are CPU seconds of the driver, its JVM and the Python workers; the first pass of each, in
which the JVM compiles, and its first batches do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.batches import Batches, drain
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.reports import fill, sql_type
from deploy import jars
from deploy.stack import Stack
from sinks.kafka.topics import TOPICS, ensure_topics
from sources.load_reports import select_reports
from sources.shards import SHARDS
from sources.topics import KafkaSource
from streaming.config import SparkConfig
from streaming.query.broker_operator import BrokerOperator
from streaming.query.decoding import PARCELS, decode_batches
from streaming.query.session import spark_session
from trimtab.intake.snapshot import IntakeSettings
from trimtab.wire import keys
from trimtab.wire.rows import ROW_SCHEMA

BUNDLES: Final = 100
BATCHES: Final = 7
PASSES: Final = 3
A_BROKER: Final = 1 << 30
"""So many shards that hardly two brokers share one."""


class Shape(NamedTuple):
    """A topic of its own, and what one batch of it holds."""

    topic: str
    brokers: int
    each: int
    """Reports of a broker in a batch."""

    @property
    def batch(self) -> int:
        return self.brokers * self.each


MANY: Final = Shape("many-brokers", 2_000, 1)
FEW: Final = Shape("few-brokers", 100, 15)

Side = Callable[[], Batches]


def measure(folder: Path) -> list[Figure]:
    """Both shapes, all sides in turn, pass after pass."""
    (reports,) = (topic for topic in TOPICS if topic.name == keys.LOAD_REPORTS)
    topics = [replace(reports, name=shape.topic) for shape in (MANY, FEW)]
    with Stack(folder / "run") as stack:
        ensure_topics(stack.kafka_bootstrap, topics=topics)
        for shape in (MANY, FEW):
            reports_each = shape.each * BATCHES
            fill(stack.kafka_bootstrap, shape.brokers, BUNDLES, reports_each, topic=shape.topic)
        spark = spark_session(SparkConfig(jars=jars.connector_jars()), "trimtab-keys")
        try:
            costs = _costs({shape: _sides(spark, stack, shape, folder) for shape in (MANY, FEW)})
        finally:
            spark.stop()
    return _figures(costs)


def _costs(shapes: dict[Shape, dict[str, Side]]) -> dict[Shape, dict[str, list[float]]]:
    """Milliseconds of CPU a report, of each pass after the first; the shapes in turn, as the JVM
    compiles for long."""
    costs = {shape: {name: list[float]() for name in sides} for shape, sides in shapes.items()}
    for number in range(PASSES):
        for shape, sides in shapes.items():
            for name, side in sides.items():
                cost = 1000 * side().cpu
                if number:
                    costs[shape][name].append(cost)
    return costs


def _sides(spark: SparkSession, stack: Stack, shape: Shape, folder: Path) -> dict[str, Side]:
    source = KafkaSource(stack.kafka_bootstrap, max_offsets=shape.batch)
    plain = partial(drain, records=shape.batch * BATCHES, sink=None, folder=folder)

    def parsed() -> DataFrame:
        text = f.col("value").cast("string")
        return source.read(spark, shape.topic).select(f.from_json(text, sql_type()))

    def operator(shards: int) -> DataFrame:
        return _operator(select_reports(source.read(spark, shape.topic)), shards)

    return {
        "read": lambda: plain(source.read(spark, shape.topic)),
        "from_json": lambda: plain(parsed()),
        "broker": lambda: plain(operator(A_BROKER)),
        "shard": lambda: plain(operator(SHARDS)),
    }


def _operator(reports: DataFrame, shards: int) -> DataFrame:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return decode_batches(batches, shards)

    parcels = reports.mapInArrow(decode, PARCELS)
    return parcels.groupBy("cluster", "shard").transformWithState(
        BrokerOperator(IntakeSettings()), ROW_SCHEMA, "Append", "ProcessingTime"
    )


def _figures(costs: dict[Shape, dict[str, list[float]]]) -> list[Figure]:
    middle = {
        shape: {name: median(values) for name, values in sides.items()}
        for shape, sides in costs.items()
    }
    return [
        figure(
            "keys.ratio",
            middle[MANY]["shard"] / middle[FEW]["shard"],
            "times",
            f"operator ① with {_said(MANY)}, against {_said(FEW)}",
            Bar(Limit.AT_MOST, 1.5),
        ),
        figure(
            "keys.shard_ratio",
            middle[MANY]["shard"] / middle[MANY]["broker"],
            "times",
            f"{SHARDS} shards against a key for each broker, {_said(MANY)}",
        ),
        *(
            figure(
                f"keys.{name}_{shape.topic.split('-')[0]}",
                middle[shape][name],
                "CPU ms a report",
                f"`{name}`, {_said(shape)}",
                raw={"CPU ms a report": values},
            )
            for shape, sides in costs.items()
            for name, values in sides.items()
        ),
    ]


def _said(shape: Shape) -> str:
    return f"{shape.brokers} brokers, {shape.each} reports of each a batch"
