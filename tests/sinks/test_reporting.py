"""Clusters that report, by the newest reports there are."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from deploy.ports import free_port
from sinks import reporting
from sinks.errors import KafkaUnavailable
from sinks.kafka_topics import ensure_topics
from sinks.reporting import reporting_clusters
from sinks.topic_rules import Topic


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Load reports of this test alone."""
    name = f"reports-{request.node.name}"
    ensure_topics(bootstrap, topics=[Topic(name, 4, {})])
    monkeypatch.setattr(reporting, "LOAD_REPORTS", name)
    return name


def report(bootstrap: str, topic: str, *keys: str | None, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key in keys:
        producer.produce(topic, b"{}", key, partition)
    assert producer.flush(10.0) == 0


def test_clusters_of_all_partitions_are_found(bootstrap: str, topic: str) -> None:
    report(bootstrap, topic, "west/a:8080", "west/b:8080", "east/a:8080", partition=1)
    report(bootstrap, topic, "north/a:8080", partition=3)
    assert reporting_clusters(bootstrap) == {"east", "north", "west"}


def test_what_is_no_key_of_a_report_names_no_cluster(bootstrap: str, topic: str) -> None:
    report(bootstrap, topic, None, "", "west", "{west}/a:8080", "/a:8080", "e\u00e9/a")
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
