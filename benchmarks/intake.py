"""The CPU time of one report in the job, and how many reports a second the job takes in.

There are two fleets of brokers with a hundred bundles each. A batch has fifteen reports from each
broker of the small fleet, and one from each broker of the large fleet. Each fleet's reports are in
a Kafka of its own. Several queries read them in turn, in one Spark session, batch after batch:

* `read`: Kafka into a sink that does nothing.
* `from_json`: the same, but Spark parses the reports by their real schema.
* `operator`: the job's first operator into a sink that does nothing.
* `full`: the job's query: both operators, then its foreachBatch into Redis and Kafka.
* `empty`: two chained operators that compute nothing, a key for each broker. It is an upper bound
  for any query that carries the reports undecoded, and measured for the small fleet only.
* `decoded`: the same after the job's own decoding, a key for each shard: an upper bound for `full`.

A rate counts from a batch's trigger to its commit. A cost is the CPU time of the driver, its JVM
and the Python workers together. Both are medians over all passes. The first passes are left out,
because the JVM then uses one of two cores to compile, and so are the first batches of each query.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

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
from sources.topics import KafkaSource
from streaming.config import SparkConfig
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query.batch import BatchWriter
from streaming.query.folder import Folder
from streaming.query.offsets import OffsetLog
from streaming.query.pipeline import rows, snapshots_of
from streaming.query.reports.first_offsets import first_offsets
from streaming.query.reports.source import ReportStream
from streaming.query.session import spark_session
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire import keys

BUNDLES: Final = 100
BATCHES: Final = 8
PASSES: Final = 3
WARM_UP_PASSES: Final = 1


class Shape(NamedTuple):
    """A fleet, and what one batch has of it."""

    name: str
    brokers: int
    each: int
    """Reports of a broker in a batch."""

    def __str__(self) -> str:
        return f"{self.brokers} brokers, {self.each} from each in a batch"

    @property
    def batch(self) -> int:
        return self.brokers * self.each


FEW: Final = Shape("few", 100, 15)
MANY: Final = Shape("many", 2_000, 1)

Side = Callable[[], Batches]
Passes = dict[str, list[Batches]]


def measure(folder: Path) -> list[Figure]:
    """Measure all sides of both shapes in turn, pass after pass."""
    with ExitStack() as servers:
        stacks = {shape: servers.enter_context(Stack(folder / shape.name)) for shape in (FEW, MANY)}
        for shape, stack in stacks.items():
            ensure_topics(stack.kafka_bootstrap)
            fill(stack.kafka_bootstrap, shape.brokers, BUNDLES, shape.each * BATCHES)
        spark = spark_session(SparkConfig(jars=jars.connector_jars()), "trimtab-intake")
        servers.callback(spark.stop)
        sides = {shape: _sides(spark, stacks[shape], shape, folder) for shape in stacks}
        done: dict[Shape, Passes] = {shape: {name: [] for name in sides[shape]} for shape in sides}
        for _ in range(PASSES):
            for shape, own in sides.items():
                for name, side in own.items():
                    done[shape][name].append(side())
    counted = {
        shape: {name: passes[WARM_UP_PASSES:] for name, passes in own.items()}
        for shape, own in done.items()
    }
    return [*_ratios(counted), *_bounds(counted), *_amounts(counted), *_stages(counted)]


def _sides(spark: SparkSession, stack: Stack, shape: Shape, folder: Path) -> dict[str, Side]:
    source = KafkaSource(stack.kafka_bootstrap, max_offsets=shape.batch)
    reports = ReportStream(stack.kafka_bootstrap, first={}, most=shape.batch)
    plain = partial(drain, records=shape.batch * BATCHES, sink=None, folder=folder)

    def parsed() -> DataFrame:
        text = f.col("value").cast("string")
        return source.read(spark, keys.LOAD_REPORTS).select(f.from_json(text, sql_type()))

    def operator() -> DataFrame:
        return snapshots_of(reports.read(spark), IntakeSettings())

    sides = {
        "read": lambda: plain(source.read(spark, keys.LOAD_REPORTS)),
        "from_json": lambda: plain(parsed()),
        "operator": lambda: plain(operator()),
        "full": lambda: _full(spark, reports, source, stack, shape, tempfile.mkdtemp(dir=folder)),
    }
    sides["decoded"] = lambda: plain(empty_pair(spark, source, reports))
    if shape is FEW:
        sides["empty"] = lambda: plain(empty_pair(spark, source))
    return sides


def _full(  # noqa: PLR0913 - the query's parts, and where it runs
    spark: SparkSession,
    reports: ReportStream,
    source: KafkaSource,
    stack: Stack,
    shape: Shape,
    checkpoint: str,
) -> Batches:
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
        # The writer asks where the query began: at the beginning.
        first_offsets(Folder(spark, checkpoint), dict)
        decided = rows(spark, reports, source, IntakeSettings(), Settings())
        return drain_into(decided, shape.batch * BATCHES, writer, checkpoint)
    finally:
        leadership.close()


def _ratios(shapes: Mapping[Shape, Passes]) -> Iterator[Figure]:
    """What the bars are for."""
    for shape, passes in shapes.items():
        yield figure(
            f"intake.from_json_ratio_{shape.name}",
            _rate(passes["full"]) / _rate(passes["from_json"]),
            "of from_json",
            f"the job's whole query compared with `from_json`, {shape}",
            Bar(Limit.AT_LEAST, 0.6),
        )
    yield figure(
        "intake.keys_ratio",
        _cost(shapes[MANY]["operator"]) / _cost(shapes[FEW]["operator"]),
        "times",
        f"CPU time of a report in `operator`: {MANY}, compared with {FEW}",
        Bar(Limit.AT_MOST, 1.5),
    )
    yield figure(
        "intake.keys_from_json_ratio",
        _cost(shapes[MANY]["from_json"]) / _cost(shapes[FEW]["from_json"]),
        "times",
        "the same for `from_json`, which keeps no state of a broker",
    )


def _bounds(shapes: Mapping[Shape, Passes]) -> Iterator[Figure]:
    says = {
        "empty": "two operators that compute nothing: upper bound for undecoded reports",
        "decoded": "the same after the job's decoding: upper bound for the job's query",
    }
    for shape, passes in shapes.items():
        for name in says.keys() & passes.keys():
            ratio = _rate(passes[name]) / _rate(passes["from_json"])
            text = f"{says[name]}, {shape}"
            yield figure(f"intake.{name}_ratio_{shape.name}", ratio, "of from_json", text)


def _amounts(shapes: Mapping[Shape, Passes]) -> Iterator[Figure]:
    for shape, sides in shapes.items():
        for name, passes in sides.items():
            yield figure(
                f"intake.{name}_{shape.name}",
                _rate(passes),
                "reports/s",
                f"`{name}`, {shape}",
                raw={"reports/s": _rates(passes)},
            )
        for name, passes in sides.items():
            yield figure(
                f"intake.{name}_{shape.name}_cpu",
                _cost(passes),
                "CPU ms a report",
                f"`{name}`, {shape}",
                raw={"CPU ms a report": [1000 * each.cpu for each in passes]},
            )


def _stages(shapes: Mapping[Shape, Passes]) -> Iterator[Figure]:
    """Where a batch of the whole query spends its time, by Spark's own account."""
    for shape, sides in shapes.items():
        for stage in sides["full"][0].stages:
            taken = [seconds for each in sides["full"] for seconds in each.stages[stage]]
            says = f"`full`: Spark's {stage}, {shape}"
            name = f"intake.full_{shape.name}_{stage}"
            yield figure(name, 1000 * median(taken), "ms a batch", says)


def _rates(passes: list[Batches]) -> list[float]:
    return [
        count / seconds
        for done in passes
        for count, seconds in zip(done.rows, done.seconds, strict=True)
    ]


def _rate(passes: list[Batches]) -> float:
    """Reports a second."""
    return median(_rates(passes))


def _cost(passes: list[Batches]) -> float:
    """CPU milliseconds a report."""
    return 1000 * median(each.cpu for each in passes)
