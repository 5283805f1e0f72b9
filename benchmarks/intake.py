"""How fast the job takes in reports: bundle rows a second, compared with Spark's own reading.

A topic of load reports is read in batches back to back, by several queries in turn in one Spark
session: `read` (Kafka into a no-op sink), `from_json` (the same, parsed by Spark with the report's
real schema), `operator` (our operator ① into a no-op sink), `empty` (two chained operators that
compute nothing, a key for each broker), `decoded` (the same after the job's own decoding, a key
for each shard) and `full` (the job's query: both operators, then the real foreachBatch into Redis
and Kafka). The bar is judged on `full`, which does all that the job does. Times are trigger to
commit, medians over all passes; the first passes, in which the JVM compiles with one of two cores,
and the first batches of each query are left out. `decoded` bounds `full`, and `empty` any query
that carries the reports as they are, however little either computes.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.batches import Batches, drain, drain_into
from benchmarks.empty import empty_pair
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.reports import fill, sql_type
from deploy import jars
from deploy.stack import Stack
from sinks.exposition import Exposition
from sinks.kafka.generation import claim
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.publisher import Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from sources.load_reports import select_reports
from sources.topics import KafkaSource
from streaming.config import SparkConfig
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query.batch import BatchWriter
from streaming.query.offsets import OffsetLog
from streaming.query.pipeline import rows, snapshots_of
from streaming.query.session import spark_session
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire import keys

BROKERS: Final = 100
BUNDLES: Final = 100
BATCH: Final = 1_500
BATCHES: Final = 9
PASSES: Final = 6
WARM_UP_PASSES: Final = 3
RECORDS: Final = BATCH * BATCHES

Side = Callable[[], Batches]


def measure(folder: Path) -> list[Figure]:
    """Measure all sides in turn, pass after pass."""
    with Stack(folder / "run") as stack:
        ensure_topics(stack.kafka_bootstrap)
        size = fill(stack.kafka_bootstrap, BROKERS, BUNDLES, RECORDS // BROKERS)
        spark = spark_session(SparkConfig(jars=jars.connector_jars()), "trimtab-intake")
        try:
            sides = _sides(spark, stack, folder)
            passes = [{name: side() for name, side in sides.items()} for _ in range(PASSES)]
        finally:
            spark.stop()
    counted = passes[WARM_UP_PASSES:]
    return _figures({name: [done[name] for done in counted] for name in sides}, size)


def _sides(spark: SparkSession, stack: Stack, folder: Path) -> dict[str, Side]:
    source = KafkaSource(stack.kafka_bootstrap, max_offsets=BATCH)
    plain = partial(drain, records=RECORDS, sink=None, folder=folder)

    def parsed() -> DataFrame:
        text = f.col("value").cast("string")
        return source.read(spark, keys.LOAD_REPORTS).select(f.from_json(text, sql_type()))

    return {
        "read": lambda: plain(source.read(spark, keys.LOAD_REPORTS)),
        "from_json": lambda: plain(parsed()),
        "operator": lambda: plain(_operator(spark, source)),
        "empty": lambda: plain(empty_pair(spark, source)),
        "decoded": lambda: plain(empty_pair(spark, source, decoded=True)),
        "full": lambda: _full(spark, source, stack, tempfile.mkdtemp(dir=folder)),
    }


def _operator(spark: SparkSession, source: KafkaSource) -> DataFrame:
    reports = select_reports(source.read(spark, keys.LOAD_REPORTS))
    return snapshots_of(reports, IntakeSettings())


def _full(spark: SparkSession, source: KafkaSource, stack: Stack, checkpoint: str) -> Batches:
    """The query and the sinks as ``streaming.job`` puts them together."""
    shown = Exposition()
    leadership = Leadership(
        lambda above: claim(stack.kafka_bootstrap, "trimtab-bench", above=above), shown
    )
    client = redis_client(stack.redis_url)
    store = OwnershipStore(client)
    journal = partial(newest_records, stack.kafka_bootstrap)
    writer = BatchWriter(
        store,
        Publisher(stack.kafka_bootstrap),
        StoreOpener(ClusterGate(client), store, journal, leadership, shown),
        OffsetLog(spark, checkpoint),
        SinkRetry(threading.Event(), Progress(), shown),
        lambda: None,
    )
    try:
        decided = rows(spark, source, IntakeSettings(), Settings())
        return drain_into(decided, RECORDS, writer, checkpoint)
    finally:
        leadership.close()


def _figures(sides: dict[str, list[Batches]], size: int) -> list[Figure]:
    rates = {name: _rates(passes) for name, passes in sides.items()}
    cpu = {name: [1e6 / BUNDLES * done.cpu for done in passes] for name, passes in sides.items()}
    middle = {name: median(values) for name, values in rates.items()}
    raw = {f"{name} rows/s": values for name, values in rates.items()}
    share = Bar(Limit.AT_LEAST, 0.25)
    return [
        figure(
            "intake.ratio",
            middle["full"] / middle["read"],
            "of Spark's read",
            f"the job's whole query, {size / 1000:.0f} kB and {BUNDLES} bundles a report, {BATCH} "
            "reports a batch",
            share,
            raw,
        ),
        figure(
            "intake.operator_ratio",
            middle["operator"] / middle["read"],
            "of Spark's read",
            "operator ① alone into a no-op sink",
        ),
        figure(
            "intake.from_json_ratio",
            middle["full"] / middle["from_json"],
            "of from_json",
            "the job's whole query against Spark parsing alone",
        ),
        figure(
            "intake.empty_ratio",
            middle["empty"] / middle["read"],
            "of Spark's read",
            "two chained operators that compute nothing: the most a query could reach that carries "
            "reports as they are",
        ),
        figure(
            "intake.decoded_ratio",
            middle["decoded"] / middle["read"],
            "of Spark's read",
            "the same after the job's decoding, by shard: the most the job's query could reach",
        ),
        *(
            figure(f"intake.{name}", rate, "bundle rows/s", f"`{name}`")
            for name, rate in middle.items()
        ),
        *(
            figure(
                f"intake.{name}_cpu",
                median(seconds),
                "CPU s a million rows",
                f"`{name}`, driver, JVM and Python workers together",
                raw={"CPU s a million rows": seconds},
            )
            for name, seconds in cpu.items()
        ),
        *_stages(sides["full"]),
    ]


def _rates(passes: list[Batches]) -> list[float]:
    return [
        count * BUNDLES / seconds
        for done in passes
        for count, seconds in zip(done.rows, done.seconds, strict=True)
    ]


def _stages(passes: list[Batches]) -> list[Figure]:
    """Where a batch of the whole query spends its time, by Spark's own account."""
    return [
        figure(
            f"intake.full_{stage}",
            1000 * median(seconds for done in passes for seconds in done.stages[stage]),
            "ms a batch",
            f"`full`: Spark's {stage}",
        )
        for stage in passes[0].stages
    ]
