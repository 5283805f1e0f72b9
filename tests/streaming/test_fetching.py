"""A task gets the records of its spans from Kafka, each once, whatever lies around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.topic_rules import Topic
from sinks.kafka.topics import ensure_topics
from sources.records import Record
from sources.spans import Span
from streaming.query.reports import fetching
from streaming.query.reports.fetching import LostReports, fetch

pytestmark = pytest.mark.e2e


@pytest.fixture
def topic(kafka: KafkaServer, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions."""
    name = str(request.node.name).replace("[", "-").replace("]", "").replace(" ", "-")
    stamped = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(9 << 20)}
    ensure_topics(kafka.bootstrap, topics=[Topic(name, 2, config=stamped)])
    return name


@pytest.fixture(autouse=True)
def no_client_left() -> Iterator[None]:
    """A worker of Spark keeps its client; this process has other tests to run."""
    yield
    for consumer in fetching._consumers.values():
        consumer.close()
    fetching._consumers.clear()


def write(bootstrap: str, topic: str, partition: int, values: Iterable[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 9 << 20})
    for number, value in enumerate(values):
        headers: list[tuple[str, Any]] = [("n", b"%d" % number), ("n", None)]
        producer.produce(topic, value, b"k", partition, headers=headers)
    assert producer.flush(30) == 0


def commit(bootstrap: str, topic: str, *, abort: bool = False) -> None:
    """A transaction of one record; its end takes an offset of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction", partition=0)
    if abort:
        producer.flush(30)
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)


def cut(bootstrap: str, topic: str, partition: int, before: int) -> None:
    """What retention does."""
    place = TopicPartition(topic, partition, before)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([place]).values():
        done.result()


def fetched(bootstrap: str, topic: str, *spans: Span, lenient: bool = False) -> list[Record]:
    chunks = fetch(bootstrap, topic, spans, {}, lenient=lenient)
    return [record for chunk in chunks for record in chunk]


def places(records: Iterable[Record]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


def test_just_the_records_of_the_spans_come_with_all_that_kafka_says_of_them(
    kafka: KafkaServer, topic: str
) -> None:
    write(kafka.bootstrap, topic, 0, [b"%d" % n for n in range(9)])
    write(kafka.bootstrap, topic, 1, [b"", None])
    found = fetched(kafka.bootstrap, topic, Span(0, 3, 5), Span(1, 0, 2))
    assert places(found) == [(0, 3), (0, 4), (1, 0), (1, 1)]
    by_place = {(r.partition, r.offset): r for r in found}
    third = by_place[0, 3]
    assert (third.topic, third.key, third.value) == (topic, b"k", b"3")
    assert third.headers == (("n", b"3"), ("n", None))
    assert third.at > 1_600_000_000_000
    assert [by_place[1, offset].value for offset in (0, 1)] == [b"", None]


def test_the_same_client_reads_elsewhere_next(kafka: KafkaServer, topic: str) -> None:
    write(kafka.bootstrap, topic, 0, [b"%d" % n for n in range(50)])
    for span in (Span(0, 0, 10), Span(0, 30, 40), Span(0, 5, 6), Span(0, 40, 50)):
        found = fetched(kafka.bootstrap, topic, span)
        assert places(found) == [(0, offset) for offset in range(span.start, span.end)]
    assert len(fetching._consumers) == 1


@pytest.mark.parametrize("abort", [False, True], ids=["committed", "aborted"])
def test_offsets_that_no_record_has_are_not_waited_for(
    kafka: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch, abort: bool
) -> None:
    commit(kafka.bootstrap, topic, abort=abort)
    commit(kafka.bootstrap, topic, abort=abort)
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 15.0)
    # As Spark's connector reads intents: what was aborted counts, too.
    assert places(fetched(kafka.bootstrap, topic, Span(0, 0, 4))) == [(0, 0), (0, 2)]
    assert places(fetched(kafka.bootstrap, topic, Span(0, 0, 2))) == [(0, 0)]
    assert places(fetched(kafka.bootstrap, topic, Span(0, 1, 2))) == []


def test_records_that_kafka_has_deleted_are_told_or_skipped(kafka: KafkaServer, topic: str) -> None:
    write(kafka.bootstrap, topic, 0, [b"%d" % n for n in range(9)])
    cut(kafka.bootstrap, topic, 0, 4)
    with pytest.raises(LostReports, match=f"does not have {topic}/0 from 2 on"):
        fetched(kafka.bootstrap, topic, Span(0, 2, 6))
    assert places(fetched(kafka.bootstrap, topic, Span(0, 2, 6), lenient=True)) == [(0, 4), (0, 5)]
    assert places(fetched(kafka.bootstrap, topic, Span(0, 0, 3), lenient=True)) == []


def test_large_records_come_in_chunks_of_a_few_mebibytes(kafka: KafkaServer, topic: str) -> None:
    write(kafka.bootstrap, topic, 0, [bytes(300 << 10)] * 60 + [bytes(7 << 20)])
    chunks = list(fetch(kafka.bootstrap, topic, [Span(0, 0, 61)], {}, lenient=False))
    assert places(r for chunk in chunks for r in chunk) == [(0, offset) for offset in range(61)]
    sizes = [sum(len(r.value or b"") for r in chunk) for chunk in chunks]
    assert len(chunks) > 1
    largest_call = (fetching._AT_ONCE + 7) << 20
    assert max(sizes) < fetching.CHUNK + largest_call


def test_a_kafka_that_sends_nothing_is_given_up(
    kafka: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.5)
    away = f"127.0.0.1:{free_port()}"
    with pytest.raises(KafkaUnavailable, match=f"{away} sent nothing of {topic}/0 from 0 to 5"):
        fetched(away, topic, Span(0, 0, 5))
    assert not fetching._consumers
    # The topic is there, and has less than Spark believes.
    with pytest.raises(LostReports, match=f"{topic}/1 from 3"):
        fetched(kafka.bootstrap, topic, Span(1, 3, 5))


def test_an_option_that_the_client_refuses_is_told() -> None:
    span = Span(0, 0, 1)
    with pytest.raises(Misconfigured, match="nonsense"):
        list(fetch("127.0.0.1:1", "any", [span], {"security.protocol": "nonsense"}, lenient=False))
