"""What a driver says of itself on the topic of generations, and what a standby hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TypeVar

import msgspec
import pytest
import stamina
from confluent_kafka import KafkaException, Producer

import sinks.kafka.generation
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from sinks.errors import Fenced, KafkaUnavailable
from sinks.exposition import Exposition
from sinks.kafka.claim_reader import Signs
from sinks.kafka.generation import Claim, ClaimRecord, Sign, claim
from sinks.kafka.last_claim import highest_generation
from sinks.kafka.topics import ensure_topics
from streaming.leader.leadership import Leadership
from tests.support.new_topics import recreate_topics
from trimtab.wire import keys

pytestmark = pytest.mark.e2e

T = TypeVar("T")

PATIENCE = 30.0
MOMENT = 0.2


@pytest.fixture
def signs(bootstrap: str) -> Iterator[Signs]:
    with closing(Signs(bootstrap)) as signs:
        yield signs


def test_a_standby_hears_what_the_driver_says(bootstrap: str, signs: Signs) -> None:
    held = claim(bootstrap, "job")
    assert signs.newest(PATIENCE) is Sign.CLAIM
    assert signs.newest(MOMENT) is None

    held.assert_held()
    assert signs.newest(PATIENCE) is Sign.HEARTBEAT

    held.bid_farewell()
    assert signs.newest(PATIENCE) is Sign.FAREWELL
    held.close()


def test_a_record_is_heard_before_its_transaction_ends_and_that_end_is_not(
    bootstrap: str, signs: Signs
) -> None:
    """The mark that Kafka sets at its end was once taken for an error."""
    held = claim(bootstrap, "job")
    assert signs.newest(PATIENCE) is Sign.CLAIM
    record = ClaimRecord(job="job", at=0, host="", pid=0, sign=Sign.HEARTBEAT)
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "test-mark"})
    writer.init_transactions(PATIENCE)

    writer.begin_transaction()
    writer.produce(keys.GENERATIONS, msgspec.json.encode(record), b"job", partition=0)
    writer.flush(PATIENCE)
    assert signs.newest(PATIENCE) is Sign.HEARTBEAT
    writer.commit_transaction(PATIENCE)

    assert signs.newest(1.0) is None
    writer.close()
    held.close()


def test_a_late_standby_hears_the_last_word_only(bootstrap: str) -> None:
    held = claim(bootstrap, "job")
    for _ in range(3):
        held.assert_held()
    held.bid_farewell()
    held.close()

    with closing(Signs(bootstrap)) as signs:
        assert signs.newest(PATIENCE) is Sign.FAREWELL
        assert signs.newest(MOMENT) is None


def test_a_fenced_driver_is_ignored(bootstrap: str, signs: Signs) -> None:
    older = claim(bootstrap, "job")
    newer = claim(bootstrap, "job")
    assert signs.newest(PATIENCE) is Sign.CLAIM

    for say in (older.assert_held, older.bid_farewell):
        with pytest.raises(Fenced):
            say()

    assert signs.newest(MOMENT) is None
    newer.close()
    older.close()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("own-kafka")) as server:
        ensure_topics(server.bootstrap)
        yield server


@pytest.fixture
def own_kafka(apart: KafkaServer) -> KafkaServer:
    """To be stopped, and without a claim at first."""
    recreate_topics(apart.bootstrap, keys.GENERATIONS)
    return apart


def test_the_first_claim_waits_for_no_other(own_kafka: KafkaServer) -> None:
    with closing(Signs(own_kafka.bootstrap)) as signs:
        assert until_it_answers(lambda: signs.newest(MOMENT)) is Sign.FAREWELL


def test_a_driver_and_a_standby_go_on_after_kafka_was_away(own_kafka: KafkaServer) -> None:
    held = claim(own_kafka.bootstrap, "job")
    with closing(Signs(own_kafka.bootstrap)) as signs:
        assert signs.newest(PATIENCE) is Sign.CLAIM
        own_kafka.kill()
        with pytest.raises(KafkaUnavailable):
            signs.newest(MOMENT)
        with pytest.raises(KafkaUnavailable):
            held.assert_held()
        own_kafka.start()

        until_it_answers(held.bid_farewell)
        while until_it_answers(lambda: signs.newest(PATIENCE)) is not Sign.FAREWELL:
            pass
    held.close()


def test_the_first_claim_of_all_is_above_those_of_a_kafka_that_is_gone(
    own_kafka: KafkaServer,
) -> None:
    """Brokers keep epochs on disk; those of a new fleet must be above them."""
    before = time.time_ns() // 1_000_000_000
    given = []
    for _ in range(2):
        held = claim(own_kafka.bootstrap, "job")
        given.append(held.generation)
        held.close()
    assert before <= given[0] <= time.time_ns() // 1_000_000_000
    assert given[1] == given[0] + 1


def test_a_topic_on_which_no_claim_was_committed_has_none(own_kafka: KafkaServer) -> None:
    until_it_answers(lambda: highest_generation(own_kafka.bootstrap, {}))
    writer = Producer({"bootstrap.servers": own_kafka.bootstrap, "transactional.id": "test-abort"})
    writer.init_transactions(PATIENCE)
    writer.begin_transaction()
    record = ClaimRecord(job="job", at=0, host="", pid=0, generation=7)
    writer.produce(keys.GENERATIONS, msgspec.json.encode(record), b"job", partition=0)
    writer.flush(PATIENCE)
    writer.abort_transaction(PATIENCE)

    assert highest_generation(own_kafka.bootstrap, {}) == 0


def test_a_claim_is_above_those_before_and_above_what_is_asked(own_kafka: KafkaServer) -> None:
    given = []
    for above in (500, 0, 900, 0, 300):
        held = claim(own_kafka.bootstrap, "job", above=above)
        given.append(held.generation)
        held.bid_farewell()
        held.close()
    assert given == sorted(set(given))
    assert given[0] == 501
    assert given[2] == 901


def test_a_claim_is_above_that_of_a_job_that_numbered_it_by_its_offset(
    own_kafka: KafkaServer,
) -> None:
    """Its records name no generation; the newest of those that do is far behind them."""
    held = claim(own_kafka.bootstrap, "job", above=10_000)
    held.close()
    writer = transactional(own_kafka.bootstrap)
    for number in range(60):
        sign = Sign.HEARTBEAT if number else Sign.CLAIM
        record = ClaimRecord(job="job", at=0, host="", pid=0, sign=sign)
        old = msgspec.json.decode(msgspec.json.encode(record), type=dict[str, object])
        del old["generation"]
        writer.begin_transaction()
        writer.produce(keys.GENERATIONS, msgspec.json.encode(old), b"job", partition=0)
        writer.commit_transaction(PATIENCE)
    newer = claim(own_kafka.bootstrap, "job")
    assert newer.generation == 10_002
    newer.close()
    writer.close()


def test_a_claim_that_was_called_off_only_uses_up_its_offset(
    own_kafka: KafkaServer,
) -> None:
    claim(own_kafka.bootstrap, "job", above=1).close()
    writer = transactional(own_kafka.bootstrap)
    record = ClaimRecord(job="job", at=0, host="", pid=0, generation=10_000)
    writer.begin_transaction()
    writer.produce(keys.GENERATIONS, msgspec.json.encode(record), b"job", partition=0)
    writer.flush(PATIENCE)
    # It fences that writer, whose record is never committed.
    held = claim(own_kafka.bootstrap, "job")
    assert 2 < held.generation < 100
    with pytest.raises(KafkaException):
        writer.commit_transaction(PATIENCE)
    held.close()


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"junk", id="not JSON"),
        pytest.param(None, id="a tombstone"),
        pytest.param(b"\xff\x00", id="not UTF-8"),
        pytest.param(b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}", id="deep"),
        pytest.param(b'{"generation":"many"}', id="text for a number"),
        pytest.param(b'{"generation":-7}', id="a negative generation"),
        pytest.param(b'{"generation":1%s}' % (b"0" * 40), id="a huge generation"),
        pytest.param(b'{"generation":4503599627370496}', id="one beyond those given out"),
        pytest.param(b'{"job":"job","at":0,"host":"","pid":0,"sign":"shout"}', id="unknown sign"),
    ],
)
def test_what_no_job_has_written_stops_neither_a_claim_nor_a_standby(
    bootstrap: str, value: bytes | None
) -> None:
    """One such record would keep every job from starting until it is compacted away."""
    held = claim(bootstrap, "job")
    held.bid_farewell()
    writer = Producer({"bootstrap.servers": bootstrap})
    writer.produce(keys.GENERATIONS, value, b"somebody", partition=0)
    writer.flush(PATIENCE)
    with closing(Signs(bootstrap)) as signs:
        assert signs.newest(PATIENCE) is Sign.FAREWELL
    newer = claim(bootstrap, "job")
    assert held.generation < newer.generation < held.generation + 100
    newer.close()
    held.close()


def test_a_claimer_that_is_overtaken_is_given_no_generation(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the same claims as the one that overtakes it."""
    overtaking: list[Claim] = []

    def read(address: str, client: Mapping[str, str]) -> int:
        found = highest_generation(address, client)
        monkeypatch.undo()
        overtaking.append(claim(bootstrap, "job"))
        return found

    monkeypatch.setattr(sinks.kafka.generation, "highest_generation", read)
    with pytest.raises(Fenced):
        claim(bootstrap, "job")
    [newer] = overtaking
    newer.assert_held()
    newer.close()


def test_a_job_outlives_the_topic_of_its_claim(own_kafka: KafkaServer) -> None:
    held = claim(own_kafka.bootstrap, "job", above=500)
    recreate_topics(own_kafka.bootstrap, keys.GENERATIONS)
    until_it_answers(held.assert_held)
    newer = claim(own_kafka.bootstrap, "job")
    assert newer.generation > held.generation
    newer.close()
    held.close()


def test_after_the_topic_was_made_again_a_claim_begins_where_redis_says(
    own_kafka: KafkaServer,
) -> None:
    """What the job does when the store is open to a generation above its own."""
    ahead = 1 << 35  # the clock of the job that claimed it was wrong
    claim(own_kafka.bootstrap, "job", above=ahead).close()
    recreate_topics(own_kafka.bootstrap, keys.GENERATIONS)
    leadership = Leadership(
        lambda above: claim(own_kafka.bootstrap, "job", above=above), Exposition()
    )
    assert leadership.generation < ahead
    leadership.renew(above=ahead + 1)
    assert leadership.generation == ahead + 2
    leadership.close()


def transactional(bootstrap: str) -> Producer:
    """As a job of an earlier version, it fences the one that holds a claim."""
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "trimtab-job"})
    writer.init_transactions(PATIENCE)
    return writer


def test_an_absent_kafka_is_not_a_silent_driver() -> None:
    address = f"127.0.0.1:{free_port()}"
    with closing(Signs(address)) as signs, pytest.raises(KafkaUnavailable, match=address):
        signs.newest(MOMENT)


def until_it_answers(ask: Callable[[], T]) -> T:
    """A Kafka that has just started does not know its topics yet."""
    for attempt in stamina.retry_context(on=KafkaUnavailable, timeout=60.0, wait_max=1.0):
        with attempt:
            return ask()
    raise AssertionError("no answer")
