"""What Spark learns about load reports before it reads them, and where a new query begins."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from deploy import jars
from deploy.kafka_server import KafkaServer
from sinks.errors import KafkaUnavailable
from sources.spans import Span
from streaming.query.reports import source
from streaming.query.reports.fetching import LostReports
from streaming.query.reports.first_offsets import FILE, first_offsets
from streaming.query.reports.rounds_due import Due
from streaming.query.reports.source import ReportReader, ReportStream, _Source
from tests.support.new_topics import recreate_topics
from tests.support.on_disk import OnDisk
from trimtab.wire import keys

REPORTS = keys.LOAD_REPORTS
START = {REPORTS: {"0": 0, "1": 0, "2": 0, "3": 0}}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A Kafka that these tests may stop."""
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def reader(own: KafkaServer) -> ReportReader:
    recreate_topics(own.bootstrap, REPORTS)
    return ReportReader(ReportStream(own.bootstrap, first={"0": 3}, most=8))


def report(bootstrap: str, *counts: int) -> None:
    """So many records in each partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, count in enumerate(counts):
        for _ in range(count):
            producer.produce(REPORTS, b"{}", b"c/b:1", partition)
    assert producer.flush(30) == 0


@pytest.mark.e2e
def test_a_batch_ends_where_the_limit_says_or_the_topic(
    own: KafkaServer, reader: ReportReader
) -> None:
    assert reader.reportLatestOffset() is None
    report(own.bootstrap, 4, 12)
    assert reader.getDefaultReadLimit() == ReadMaxRows(8)
    end = reader.latestOffset(START, ReadMaxRows(8))
    assert end == {REPORTS: {"0": 2, "1": 6, "2": 0, "3": 0}}
    newest = {REPORTS: {"0": 4, "1": 12, "2": 0, "3": 0}}
    assert reader.reportLatestOffset() == newest
    assert reader.latestOffset(end, ReadAllAvailable()) == newest
    assert [share.spans for share in reader.partitions(START, end)] == [
        [Span(0, 0, 2), Span(1, 0, 6)]
    ]


@pytest.mark.e2e
def test_a_batch_leaves_room_for_a_round_that_is_due(own: KafkaServer, tmp_path: Path) -> None:
    recreate_topics(own.bootstrap, REPORTS)
    report(own.bootstrap, 16)
    due = tmp_path / "due"
    due.write_bytes(msgspec.json.encode({"c": Due(at_ms=1, brokers=5)}))
    reader = ReportReader(ReportStream(own.bootstrap, first={}, most=8, due=str(due)))
    ends = [reader.latestOffset(START, ReadMaxRows(8))[REPORTS]["0"] for _ in range(2)]
    assert ends == [3, 8]
    assert reader.latestOffset(START, ReadAllAvailable())[REPORTS]["0"] == 16


@pytest.mark.e2e
def test_a_topic_that_ends_before_what_was_read_is_told_or_gone_on_with(
    own: KafkaServer, reader: ReportReader
) -> None:
    report(own.bootstrap, 2)
    read = {REPORTS: {**START[REPORTS], "0": 7}}
    with pytest.raises(LostReports, match=f"{REPORTS}/0 has been read up to 7, and ends at 2"):
        reader.latestOffset(read, ReadMaxRows(8))
    lenient = ReportReader(ReportStream(own.bootstrap, first={}, most=8, lenient=True))
    end = lenient.latestOffset(read, ReadMaxRows(8))
    assert end[REPORTS]["0"] == 2
    assert lenient.partitions(read, end) == []


@pytest.mark.e2e
def test_a_kafka_that_is_away_for_a_moment_has_nothing_new(
    own: KafkaServer, reader: ReportReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(own.bootstrap, 5)
    gone = {REPORTS: {**START[REPORTS], "9": 0}}
    assert reader.latestOffset(gone, ReadMaxRows(8)) == gone
    own.kill()
    try:
        monkeypatch.setattr(source, "TIMEOUT_SECONDS", 0.2)
        assert reader.latestOffset(START, ReadMaxRows(8)) == START
        monkeypatch.setattr(source, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(KafkaUnavailable, match=f"looking at {REPORTS}"):
            reader.latestOffset(START, ReadMaxRows(8))
    finally:
        own.start()


def test_the_reader_goes_to_workers_with_its_options_alone() -> None:
    stream = ReportStream("a:1", first={"0": 3}, most=8, client={"sasl.password": "x"})
    made = _Source({source._OPTION: json.dumps(asdict(stream))}).streamReader(StructType())
    assert made.initialOffset() == {REPORTS: {"0": 3}}
    assert pickle.loads(pickle.dumps(made))._stream == stream


def test_where_a_query_begins_is_asked_once(tmp_path: Path) -> None:
    files = OnDisk(tmp_path)
    assert first_offsets(files, lambda: {1: 7, 0: 5}) == {"0": 5, "1": 7}
    assert first_offsets(files, lambda: {0: 99}) == {"0": 5, "1": 7}


def test_where_a_query_of_sparks_connector_began_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text('\0v1\n{"trimtab.load-reports":{"1":4,"0":2}}')
    assert first_offsets(OnDisk(tmp_path), dict) == {"1": 4, "0": 2}
