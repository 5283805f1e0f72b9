"""Reports reach Kafka in order, or are counted; nothing waits for them."""

from __future__ import annotations

import threading
from itertools import count

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

import agent.reports.outbox
from agent.reports.outbox import (
    FIRST_WAIT_S,
    IN_FLIGHT,
    LONGEST_WAIT_S,
    STUCK_S,
    Counts,
    Message,
    Outbox,
)
from agent.reports.producer import kafka_producer
from agent.reports.reporting import Reporter
from deploy.kafka_server import KafkaServer
from sinks.errors import KafkaUnavailable, Misconfigured
from tests.agent.shelf import Shelf
from tests.agent.support import A, Clock, Recorder
from tests.support.waiting import eventually


class Waits(threading.Event):
    """The waits between attempts, none of which takes any time; after the last one it is set."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.seconds: list[float | None] = []
        self._number = number

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        if len(self.seconds) == self._number:
            self.set()
        return self.is_set()


def report(key: int, value: int = 0) -> Message:
    return Message(b"%d" % key, b"%d" % value, [])


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def outbox(shelf: Shelf) -> Outbox:
    return Outbox(lambda: shelf)


def test_only_the_newest_unsent_report_of_a_broker_is_kept(outbox: Outbox, shelf: Shelf) -> None:
    for key, value in ((1, 1), (2, 1), (1, 2), (1, 3)):
        outbox.put(report(key, value))
    outbox.pump()
    assert [(s.message.key, s.message.value) for s in shelf.sent] == [(b"2", b"1"), (b"1", b"3")]
    assert outbox.counts() == Counts(superseded=2)


def test_every_report_is_counted_once(outbox: Outbox, shelf: Shelf) -> None:
    for key in range(3):
        outbox.put(report(key))
    outbox.pump()
    outbox.put(report(3))
    shelf.sent[0].end(delivered=True)
    shelf.sent[1].end(delivered=False)
    outbox.stop()
    assert outbox.counts() == Counts(delivered=1, failed=2)
    assert shelf.closed


def test_an_absent_kafka_keeps_one_report_a_broker(shelf: Shelf) -> None:
    present = False

    def connect() -> Shelf:
        if not present:
            raise KafkaTimeoutError("no answer")
        return shelf

    outbox = Outbox(connect)
    for value in range(100):
        outbox.put(report(1, value))
        with pytest.raises(KafkaTimeoutError):
            outbox.pump()
    present = True
    outbox.pump()
    assert [s.message.value for s in shelf.sent] == [b"99"]
    assert outbox.counts() == Counts(superseded=99)


@pytest.mark.parametrize("error", [KafkaTimeoutError("no metadata"), ValueError("no partition")])
def test_a_report_that_cannot_be_sent_now_is_sent_later(
    outbox: Outbox, shelf: Shelf, error: Exception
) -> None:
    outbox.put(report(1))
    shelf.error = error
    with pytest.raises(KafkaError):
        outbox.pump()
    shelf.error = None
    outbox.pump()
    assert len(shelf.sent) == 1
    assert outbox.counts() == Counts()


def test_a_report_that_cannot_be_sent_takes_the_place_of_no_newer_one(
    outbox: Outbox, shelf: Shelf
) -> None:
    outbox.put(report(1, 1))
    shelf.error = KafkaTimeoutError("no metadata")
    shelf.meanwhile = lambda: outbox.put(report(1, 2))
    with pytest.raises(KafkaError):
        outbox.pump()
    shelf.error, shelf.meanwhile = None, lambda: None
    outbox.pump()
    assert [s.message.value for s in shelf.sent] == [b"2"]
    assert outbox.counts() == Counts(superseded=1)


def test_however_often_sending_fails_there_is_room_for_the_next_report(
    outbox: Outbox, shelf: Shelf
) -> None:
    outbox.put(report(1))
    shelf.error = KafkaTimeoutError("no metadata")
    for _ in range(IN_FLIGHT):
        with pytest.raises(KafkaError):
            outbox.pump()
    shelf.error = None
    outbox.pump()
    assert len(shelf.sent) == 1


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param(KafkaTimeoutError("no answer"), FIRST_WAIT_S, id="kafka-python"),
        pytest.param(KafkaUnavailable("no answer"), FIRST_WAIT_S, id="librdkafka"),
        # Soon again would look like someone who guesses passwords.
        pytest.param(Misconfigured("a wrong password"), LONGEST_WAIT_S, id="turned away"),
    ],
)
def test_a_kafka_that_cannot_be_reached_is_tried_again_ever_less_often(
    monkeypatch: pytest.MonkeyPatch, error: Exception, seconds: float
) -> None:
    def connect() -> Shelf:
        raise error

    outbox = Outbox(connect)
    waits = Waits(8)
    monkeypatch.setattr(outbox, "_stopping", waits)
    outbox.put(report(1))
    outbox._run()
    assert waits.seconds == [min(seconds * 2**n, LONGEST_WAIT_S) for n in range(8)]


def test_a_giant_does_not_stop_the_others(outbox: Outbox, shelf: Shelf) -> None:
    outbox.put(report(1))
    shelf.error = MessageSizeTooLargeError("2 MiB")
    outbox.pump()
    shelf.error = None
    outbox.put(report(2))
    outbox.pump()
    assert [s.message.key for s in shelf.sent] == [b"2"]
    assert outbox.counts() == Counts(failed=1)


def test_what_the_producer_holds_is_bounded(outbox: Outbox, shelf: Shelf) -> None:
    for key in range(IN_FLIGHT + 10):
        outbox.put(report(key))
    outbox.pump()
    assert len(shelf.sent) == IN_FLIGHT
    shelf.sent[0].end(delivered=True)
    outbox.pump()
    assert len(shelf.sent) == IN_FLIGHT + 1


def test_a_producer_that_takes_no_more_is_not_asked_all_the_time(
    outbox: Outbox, shelf: Shelf
) -> None:
    for key in range(IN_FLIGHT + 1):
        outbox.put(report(key))
    outbox.pump()
    assert not outbox._ready()
    shelf.sent[0].end(delivered=True)
    assert outbox._ready()


@pytest.mark.parametrize("delivered", [True, False])
def test_a_producer_that_ends_nothing_any_more_is_replaced(delivered: bool) -> None:
    clock = Clock()
    shelves = [Shelf(), Shelf()]
    unused = iter(shelves)
    outbox = Outbox(lambda: next(unused), clock=clock)
    for key in range(2):
        outbox.put(report(key))
    outbox.pump()
    clock.advance(STUCK_S - 1.0)
    shelves[0].sent[0].end(delivered=True)
    clock.advance(2.0)
    outbox.pump()
    assert not shelves[0].closed

    clock.advance(STUCK_S)
    outbox.put(report(7))
    outbox.pump()

    assert shelves[0].closed
    assert [sent.message for sent in shelves[1].sent] == [report(7)]
    shelves[0].sent[1].end(delivered=delivered)
    shelves[1].sent[0].end(delivered=True)
    assert outbox.counts() == Counts(delivered=2, failed=1)


def test_a_producer_that_holds_nothing_is_not_stuck(shelf: Shelf) -> None:
    clock = Clock()
    outbox = Outbox(lambda: shelf, clock=clock)
    outbox.put(report(1))
    outbox.pump()
    shelf.sent[0].end(delivered=True)

    clock.advance(STUCK_S + 1.0)
    outbox.put(report(2))
    outbox.pump()
    # Its time counts from the report that it got now.
    clock.advance(STUCK_S - 1.0)
    outbox.pump()

    assert not shelf.closed
    assert len(shelf.sent) == 2


def test_what_a_stuck_producer_holds_takes_no_room_from_the_next_one() -> None:
    clock = Clock()
    shelves = [Shelf(), Shelf()]
    unused = iter(shelves)
    outbox = Outbox(lambda: next(unused), clock=clock)
    for key in range(2 * IN_FLIGHT):
        outbox.put(report(key))
    outbox.pump()
    clock.advance(STUCK_S + 1.0)
    outbox.pump()
    assert [len(shelf.sent) for shelf in shelves] == [IN_FLIGHT, IN_FLIGHT]


def test_a_stuck_producer_is_noticed_also_while_it_takes_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No report wakes the outbox then: none may be sent."""
    monkeypatch.setattr(agent.reports.outbox, "IN_FLIGHT", 1)
    monkeypatch.setattr(agent.reports.outbox, "STUCK_S", 0.05)
    seconds = count()
    shelves: list[Shelf] = []

    def connect() -> Shelf:
        shelves.append(Shelf())
        return shelves[-1]

    outbox = Outbox(connect, clock=lambda: float(next(seconds)))
    for key in range(2):
        outbox.put(report(key))
    outbox.start()
    try:
        eventually(lambda: len(shelves) > 1 and shelves[1].sent, "another producer", 10.0)
    finally:
        outbox.stop()
    assert shelves[0].closed


def test_reports_are_numbered_within_their_session(outbox: Outbox, shelf: Shelf) -> None:
    reporter = Reporter(outbox, "c", A)
    for _ in range(2):
        reporter.report(Recorder().load_report())
        outbox.pump()
    assert [s.message.headers for s in shelf.sent] == [
        [("trimtab-session", b"1800000000000"), ("trimtab-sequence", b"1")],
        [("trimtab-session", b"1800000000000"), ("trimtab-sequence", b"2")],
    ]
    assert shelf.sent[0].message.key == b"c/a:8080"


@pytest.mark.e2e
def test_a_report_arrives_in_kafka_as_it_was_written(kafka: KafkaServer) -> None:
    topic = "agent.reports"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(20)
    outbox = Outbox(lambda: kafka_producer(kafka.bootstrap), topic)
    outbox.start()
    Reporter(outbox, "c", A).report(Recorder("t/ns/0x00000000_0xffffffff").load_report())
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    outbox.stop()
    assert message is not None
    assert message.key() == b"c/a:8080"
    assert dict(message.headers() or []) == {
        "trimtab-session": b"1800000000000",
        "trimtab-sequence": b"1",
    }
    assert list(msgspec.json.decode(message.value() or b"")["lastStats"]) == [
        "t/ns/0x00000000_0xffffffff"
    ]
    assert outbox.counts() == Counts(delivered=1)
