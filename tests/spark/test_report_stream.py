"""Spark's query gets each load report once, as a replay does, and goes on from where one with
Spark's own Kafka connector was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from deploy.kafka_server import KafkaServer
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.publisher import Outgoing, Publisher
from sources.arrivals import SIZE_LIMIT
from sources.records import report_of
from sources.shards import Parcel, parcel_up, unpack_all
from sources.topics import KafkaSource
from streaming.query.folder import Folder
from streaming.query.reports.first_offsets import first_offsets
from streaming.query.reports.source import ReportStream
from tests.spark import corpus
from tests.support.reports import bundle
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

GOOD = encode(LocalBrokerData(last_stats={bundle(0): BundleStats(topics=1)}, bundles=[bundle(0)]))
MOST = 20


def publish(publisher: Publisher, names: range) -> None:
    publisher.publish([Outgoing(keys.LOAD_REPORTS, f"c/b-{name}:1", GOOD) for name in names])


def run(frame: DataFrame, checkpoint: Path, column: str) -> list[list[bytes]]:
    """A column of each batch, until nothing is left."""
    batches = list[list[bytes]]()

    def take(batch: DataFrame, _number: int) -> None:
        batches.append([bytes(row[0]) for row in batch.select(column).collect()])

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return [batch for batch in batches if batch]


def by_broker(parcel: Parcel) -> Mapping[str, object]:
    """Each broker's sequence numbers, and the dead letters."""
    told = {
        name: sorted(a.sequence for a in arrivals) for name, arrivals in parcel.arrivals.items()
    }
    return {**told, "letters": sorted((row.cluster, row.subject) for row in parcel.letters)}


def test_spark_reads_reports_as_a_replay_does(
    spark: SparkSession, kafka: KafkaServer, publisher: Publisher, tmp_path: Path
) -> None:
    publish(publisher, range(90))
    bad = [each for each in corpus.reports("c", GOOD) if len(each.value or b"") < SIZE_LIMIT]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for each in bad:
        headers: list[tuple[str, Any]] = list(each.headers)
        producer.produce(keys.LOAD_REPORTS, each.value, each.key, headers=headers)
    assert producer.flush(30) == 0
    batches = run(ReportStream(kafka.bootstrap, {}, MOST).read(spark), tmp_path, "parcel")
    topics = RecordedTopics(kafka.bootstrap)
    records = list(topics.all(keys.LOAD_REPORTS))
    topics.close()
    assert len(records) == 90 + len(bad)
    parcels = parcel_up(map(report_of, records))
    expected = by_broker(unpack_all(list(parcels.values())))
    assert by_broker(unpack_all([each for batch in batches for each in batch])) == expected
    assert len(batches) >= len(records) // (MOST + 4)


def test_a_checkpoint_of_sparks_connector_is_read_on_and_left_for_it(
    spark: SparkSession, kafka: KafkaServer, publisher: Publisher, tmp_path: Path
) -> None:
    def names(parcels: list[list[bytes]]) -> set[str]:
        return set(unpack_all([each for batch in parcels for each in batch]).arrivals)

    def expected(part: range) -> set[str]:
        return {f"c/b-{name}:1" for name in part}

    def theirs() -> set[str]:
        frame = KafkaSource(kafka.bootstrap).read(spark, keys.LOAD_REPORTS)
        return {key.decode() for batch in run(frame, tmp_path, "key") for key in batch}

    def ours() -> set[str]:
        first = first_offsets(Folder(spark, str(tmp_path)), lambda: pytest.fail("it is known"))
        return names(
            run(ReportStream(kafka.bootstrap, first, MOST).read(spark), tmp_path, "parcel")
        )

    parts = [range(30 * number, 30 * (number + 1)) for number in range(3)]
    for part, query in zip(parts, (theirs, ours, theirs), strict=True):
        publish(publisher, part)
        assert query() == expected(part)
