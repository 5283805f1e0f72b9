"""Clusters that report, by the newest reports there are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from deploy.ports import free_port
from sinks.errors import KafkaUnavailable
from sinks.kafka import reporting_clusters as reporting
from sinks.kafka.reporting_clusters import reporting_clusters
from sinks.kafka.topic_rules import Topic
from sinks.kafka.topics import ensure_topics
from tests.support.waiting import eventually


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Load reports of this test alone."""
    name = f"reports-{request.node.name}"
    ensure_topics(bootstrap, topics=[Topic(name, 4, {})])
    monkeypatch.setattr(reporting, "LOAD_REPORTS", name)
    eventually(lambda: answered(bootstrap), "all partitions have leaders")
    return name


class Standing:
    """A consumer of two partitions. Its polls are answered in turn: one too many fails the test."""

    def __init__(self, *answers: str | int) -> None:
        """Keys of records, and codes of errors."""
        self._answers = iter(answers)
        self.closed = False

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=(0, 1))})

    def get_watermark_offsets(self, where: TopicPartition, timeout: float) -> tuple[int, int]:
        assert where.partition in (0, 1)
        assert timeout > 0
        return 0, 9

    def assign(self, tails: list[TopicPartition]) -> None:
        assert len(tails) == 2

    def poll(self, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        told = next(self._answers)
        if isinstance(told, int):
            return SimpleNamespace(error=lambda: KafkaError(told))
        return SimpleNamespace(error=lambda: None, key=told.encode)

    def close(self) -> None:
        self.closed = True


def answered(bootstrap: str) -> bool:
    try:
        reporting_clusters(bootstrap)
    except KafkaUnavailable:
        return False
    return True


def report(bootstrap: str, topic: str, *keys: str | bytes | None, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key in keys:
        producer.produce(topic, b"{}", key, partition)
    assert producer.flush(10.0) == 0


def test_clusters_of_all_partitions_are_found(bootstrap: str, topic: str) -> None:
    report(bootstrap, topic, "west/a:8080", "west/b:8080", "east/a:8080", partition=1)
    report(bootstrap, topic, "north/a:8080", partition=3)
    assert reporting_clusters(bootstrap) == {"east", "north", "west"}


def test_what_is_no_key_of_a_report_names_no_cluster(bootstrap: str, topic: str) -> None:
    odd = (None, "", "west", "{west}/a:8080", "/a:8080", "e\u00e9/a", "west/a b", b"\xff/a:8080")
    report(bootstrap, topic, *odd)
    assert reporting_clusters(bootstrap) == set()


@pytest.mark.usefixtures("topic")
def test_no_report_at_all_names_no_cluster(bootstrap: str) -> None:
    assert reporting_clusters(bootstrap) == set()


def test_only_the_newest_reports_are_read(bootstrap: str, topic: str) -> None:
    report(bootstrap, topic, "gone/a:8080", *["west/a:8080"] * 150)
    assert reporting_clusters(bootstrap) == {"west"}


def test_a_kafka_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "TIMEOUT_SECONDS", 0.2)
    where = f"127.0.0.1:{free_port()}"
    with pytest.raises(KafkaUnavailable, match=where):
        reporting_clusters(where)


def test_nothing_is_awaited_beyond_the_end_of_each_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer = Standing(
        "west/a:1", KafkaError._PARTITION_EOF, "east/a:1", KafkaError._PARTITION_EOF
    )
    monkeypatch.setattr(reporting, "Consumer", lambda _: consumer)
    assert reporting_clusters("nowhere") == {"east", "west"}
    assert consumer.closed


def test_an_error_amid_the_reports_is_no_end_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Standing("west/a:1", KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN)
    monkeypatch.setattr(reporting, "Consumer", lambda _: consumer)
    with pytest.raises(KafkaUnavailable, match="Kafka at nowhere, reading"):
        reporting_clusters("nowhere")
    assert consumer.closed
