"""Topics, claims and records against a real Kafka."""

from __future__ import annotations

import json
import time

import pytest

from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from sinks.errors import Fenced, KafkaUnavailable, Misconfigured
from sinks.kafka.clients import check_access
from sinks.kafka.generation import claim
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topic_rules import Finding, Topic
from sinks.kafka.topics import TOPICS, create_missing, ensure_topics
from tests.sinks.reading import everything_in, values_of
from trimtab.wire import keys

pytestmark = pytest.mark.e2e

APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


def test_topics_are_made_as_the_job_needs_them(bootstrap: str) -> None:
    assert ensure_topics(bootstrap) == ()


def test_what_was_made_and_what_was_there_is_told(kafka: KafkaServer) -> None:
    ours = [Topic("told-first", 1), Topic("told-second", 1)]
    assert create_missing(kafka.bootstrap, topics=ours[:1])[:2] == (("told-first",), ())
    assert create_missing(kafka.bootstrap, topics=ours)[:2] == (("told-second",), ("told-first",))


def test_the_broker_stamps_reports_and_not_the_sender(bootstrap: str) -> None:
    before = time.time_ns() // 1_000_000 - 60_000
    Publisher(bootstrap).publish([Outgoing(keys.CONTROL, "stamps", b"{}")])

    [message] = [m for m in everything_in(bootstrap, keys.CONTROL) if m.key() == b"stamps"]

    kind, at = message.timestamp()
    assert kind == 2
    assert at > before


def test_an_existing_topic_that_would_mislead_the_job_is_found(kafka: KafkaServer) -> None:
    plain = [Topic("found-time", 1), Topic("found-wide", 2), Topic("found-good", 3)]
    ensure_topics(kafka.bootstrap, topics=plain)

    findings = ensure_topics(
        kafka.bootstrap,
        topics=[
            Topic("found-time", 1, needs=APPEND_TIME),
            Topic("found-wide", 1, single=True),
            Topic("found-good", 1),
            Topic("found-missing", 1, needs=APPEND_TIME),
        ],
    )

    assert findings == (
        Finding("found-time", "message.timestamp.type", "CreateTime", "LogAppendTime"),
        Finding("found-wide", "partitions", "2", "1"),
    )
    assert "CreateTime" in str(findings[0])


def test_a_wider_limit_on_reports_is_the_operators_choice(kafka: KafkaServer) -> None:
    raised = Topic("raised", 1, needs=APPEND_TIME, config={"max.message.bytes": "20000000"})
    ensure_topics(kafka.bootstrap, topics=[raised])

    [reports] = [topic for topic in TOPICS if topic.name == keys.LOAD_REPORTS]
    usual = Topic("raised", reports.partitions, reports.needs, reports.config)

    assert ensure_topics(kafka.bootstrap, topics=[usual]) == ()


def test_an_absent_kafka_is_named() -> None:
    address = f"127.0.0.1:{free_port()}"

    with pytest.raises(KafkaUnavailable, match=address):
        ensure_topics(address)


def test_a_later_claim_has_a_larger_generation_and_fences_the_earlier_one(bootstrap: str) -> None:
    first = claim(bootstrap, "job")
    first.assert_held()
    second = claim(bootstrap, "job")

    assert 0 < first.generation < second.generation
    for _ in range(2):
        with pytest.raises(Fenced, match=bootstrap):
            first.assert_held()
    second.assert_held()
    first.close()
    second.close()


def test_a_claim_after_a_clean_end_is_larger_too(bootstrap: str) -> None:
    first = claim(bootstrap, "job")
    first.close()
    second = claim(bootstrap, "job")
    second.close()

    assert first.generation < second.generation


def test_every_record_of_a_claim_names_its_generation(bootstrap: str) -> None:
    """Compaction leaves the last one only."""
    ahead = 1 << 34  # of any clock
    held = claim(bootstrap, "who", above=ahead)
    held.assert_held()
    held.bid_farewell()

    records = [m for m in everything_in(bootstrap, keys.GENERATIONS) if m.key() == b"who"]

    told = [json.loads(message.value() or b"") for message in records]
    assert [each["sign"] for each in told] == ["claim", "heartbeat", "farewell"]
    assert [each["generation"] for each in told] == [ahead + 1] * 3
    assert {"job", "at", "host", "pid"} <= set(told[0])
    held.close()


def test_a_published_record_is_read_back_whole(bootstrap: str) -> None:
    publisher = Publisher(bootstrap)
    records = [Outgoing(keys.COMMANDS, "whole", str(number).encode()) for number in range(1000)]
    records.append(Outgoing(keys.COMMANDS, "headed", b"value", (("reason", b"\x00"),)))

    publisher.publish(records)

    expected = [record.value for record in records[:-1]]
    assert values_of(bootstrap, keys.COMMANDS, "whole") == expected
    [headed] = [m for m in everything_in(bootstrap, keys.COMMANDS) if m.key() == b"headed"]
    assert headed.headers() == [("reason", b"\x00")]


def test_publishing_nothing_needs_no_kafka() -> None:
    Publisher(f"127.0.0.1:{free_port()}").publish([])


def test_publishing_to_an_absent_kafka_says_wait() -> None:
    address = f"127.0.0.1:{free_port()}"
    publisher = Publisher(address, {"delivery.timeout.ms": "1000"})

    with pytest.raises(KafkaUnavailable, match=address):
        publisher.publish([Outgoing(keys.COMMANDS, "key", b"value")])


def test_what_kafka_will_never_take_says_so_and_harms_nothing_after_it(bootstrap: str) -> None:
    publisher = Publisher(bootstrap)

    with pytest.raises(Misconfigured, match="no-such-topic"):
        publisher.publish([Outgoing("no-such-topic", "key", b"value")])
    with pytest.raises(Misconfigured, match=keys.COMMANDS):
        publisher.publish([Outgoing(keys.COMMANDS, "key", bytes(9 << 20))])

    publisher.publish([Outgoing(keys.COMMANDS, "after", b"value")])
    assert values_of(bootstrap, keys.COMMANDS, "after") == [b"value"]


def test_a_listener_that_hangs_up_on_tls_may_be_a_plain_one(kafka: KafkaServer) -> None:
    with pytest.raises(KafkaUnavailable, match=r"speaks no TLS, set kafka\.security\.protocol"):
        check_access(kafka.bootstrap, {"security.protocol": "SSL"})
