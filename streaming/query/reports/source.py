"""The source of load reports for Spark: parcels of decoded reports, a row for each shard.

Spark's Kafka connector would carry 28 kB of JSON through the JVM to the worker that decodes it.
Offsets have the connector's form, so a checkpoint of one is read on by the other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from sinks.errors import KafkaUnavailable
from sinks.kafka.clients import TIMEOUT_SECONDS, failure, settings
from sources.records import report_of
from sources.shards import parcel_up
from sources.spans import Span, advance, share_out, spans_between
from streaming.query.offsets import Offsets
from streaming.query.reports.fetching import PATIENCE_SECONDS, LostReports, fetch
from streaming.query.reports.rounds_due import RoundsAwaited
from trimtab.wire import keys

PARCELS: Final = "shard int, parcel binary"
"""One row for a shard's reports in a chunk of records."""

_NAME: Final = "trimtab-reports"
_OPTION: Final = "secret"
"""Spark shows options of such a name to nobody: they may hold a password."""
_TYPES: Final = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])


@dataclass(frozen=True, slots=True)
class ReportStream:
    """Where reports are read, from where on, and how."""

    bootstrap: str
    first: Mapping[str, int]
    """Partition to a new query's first offset."""
    most: int
    """Most reports in a batch."""
    wait_ms: int = 10
    """Longest wait of Kafka for more than it has."""
    client: Mapping[str, str] = field(default_factory=dict)
    """The operator's options of librdkafka."""
    tasks: int = 2
    """Most tasks that read: as many as each operator has."""
    lenient: bool = False
    """Skip what Kafka has lost."""
    due: str = ""
    """The file that tells which rounds are due (`streaming.query.reports.rounds_due`)."""

    def read(self, spark: SparkSession) -> DataFrame:
        """A stream of parcels."""
        _register(spark)
        text = json.dumps(asdict(self))
        return spark.readStream.format(_NAME).option(_OPTION, text).load()


def warm_up(spark: SparkSession) -> None:
    """Have Spark start the Python processes that a query waits for: three that tell it about a
    source of ours, and the one that workers fork from. Each takes a second."""
    _register(spark)
    spark.read.format(_NAME).load().collect()


def _register(spark: SparkSession) -> None:
    manager: Any = spark._jsparkSession.sessionState().dataSourceManager()  # Any: a Java object.
    # Spark warns of a source that is registered again.
    if not manager.dataSourceExists(_NAME):
        spark.dataSource.register(_Source)


class _Source(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        return PARCELS

    def streamReader(self, schema: StructType) -> ReportReader:  # noqa: ARG002 - Spark's interface
        return ReportReader(ReportStream(**json.loads(self.options[_OPTION])))

    def reader(self, schema: StructType) -> _Nothing:  # noqa: ARG002 - the same
        return _Nothing()


class _Nothing(DataSourceReader):
    """What `warm_up` reads."""

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:  # noqa: ARG002 - Spark's interface
        return iter(())


class _Share(InputPartition):
    """What one task reads."""

    def __init__(self, spans: Sequence[Span]) -> None:
        super().__init__(None)
        self.spans = spans


class ReportReader(DataSourceStreamReader):
    """Plans in a process of the driver's machine; `read` runs in a worker."""

    def __init__(self, stream: ReportStream) -> None:
        self._stream = stream
        self._admin: AdminClient | None = None
        self._newest: dict[int, int] = {}
        self._rounds = RoundsAwaited(stream.due)
        self._answered = time.monotonic()

    def initialOffset(self) -> Offsets:
        return {keys.LOAD_REPORTS: dict(self._stream.first)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._stream.most)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """The end of the next batch: ``start`` while Kafka is away for a moment.

        Raises LostReports, KafkaUnavailable and Misconfigured.
        """
        begun = _by_number(start)
        try:
            self._newest = self._ends()
            if not self._stream.lenient:
                self._check(begun)
            self._answered = time.monotonic()
        except KafkaUnavailable:
            if time.monotonic() - self._answered > PATIENCE_SECONDS:
                raise
            return start
        most = sum(self._newest.values())
        if isinstance(limit, ReadMaxRows):
            waiting = most - sum(begun.values())
            most = self._rounds.leave_room(limit.max_rows, waiting, round(1000 * time.time()))
        return _as_offsets(advance(begun, self._newest, most))

    def reportLatestOffset(self) -> Offsets | None:
        return _as_offsets(self._newest) if self._newest else None

    def partitions(self, start: Offsets, end: Offsets) -> list[_Share]:
        spans = spans_between(_by_number(start), _by_number(end))
        return [_Share(share) for share in share_out(spans, self._stream.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Share)
        stream = self._stream
        wait = {"fetch.wait.max.ms": str(stream.wait_ms)} | dict(stream.client)
        for records in fetch(
            stream.bootstrap, keys.LOAD_REPORTS, partition.spans, wait, lenient=stream.lenient
        ):
            parcels = parcel_up(map(report_of, records))
            yield pa.RecordBatch.from_pylist(
                [{"shard": shard, "parcel": parcel} for shard, parcel in parcels.items()],
                schema=_TYPES,
            )

    def _ends(self) -> dict[int, int]:
        """The offset that each partition's next record gets."""
        bootstrap = self._stream.bootstrap
        if self._admin is None:
            self._admin = AdminClient(settings(bootstrap, self._stream.client))
        try:
            told = self._admin.list_topics(keys.LOAD_REPORTS, timeout=TIMEOUT_SECONDS)
            topic = told.topics[keys.LOAD_REPORTS]
            if topic.error is not None:
                raise KafkaException(topic.error)
            newest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # the client has no type here
            asked = {
                TopicPartition(keys.LOAD_REPORTS, number): newest for number in topic.partitions
            }
            answers = self._admin.list_offsets(asked, request_timeout=TIMEOUT_SECONDS)
            return {place.partition: each.result().offset for place, each in answers.items()}
        except KafkaException as error:
            doing = f"looking at {keys.LOAD_REPORTS}"
            raise failure(bootstrap, doing, error.args[0], self._admin) from error

    def _check(self, begun: Mapping[int, int]) -> None:
        for number, start in begun.items():
            place, end = f"{keys.LOAD_REPORTS}/{number}", self._newest.get(number)
            if end is None:
                # So does a Kafka that has just started and knows not yet all of its topics.
                raise KafkaUnavailable(f"Kafka at {self._stream.bootstrap} has no {place}")
            if end < start:
                raise LostReports(f"{place} has been read up to {start}, and ends at {end} now")


def _by_number(offsets: Offsets) -> dict[int, int]:
    return {int(number): at for number, at in offsets.get(keys.LOAD_REPORTS, {}).items()}


def _as_offsets(ends: Mapping[int, int]) -> Offsets:
    return {keys.LOAD_REPORTS: {str(number): end for number, end in sorted(ends.items())}}
