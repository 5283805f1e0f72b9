"""The example does what it shows: it counts what it serves, and nothing else."""

from __future__ import annotations

import inspect
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import agent.example_broker
from agent.example_broker import ExampleBroker, holds
from deploy.ports import LOOPBACK, free_port
from deploy.redis_server import RedisServer
from tests.agent.support import BUNDLE, HALVES
from tests.support.waiting import eventually
from trimtab.store.ring import position
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import encode

ONE, OTHER = "persistent://t/ns/one", "persistent://t/other/one"


def test_it_is_short() -> None:
    assert len(inspect.getsource(agent.example_broker).splitlines()) < 100


def everywhere(_bundle: str) -> bool:
    return True


def nowhere(_bundle: str) -> bool:
    return False


def test_a_topic_of_a_bundle_that_is_served_counts() -> None:
    broker = ExampleBroker([BUNDLE])
    assert [broker.count(ONE, everywhere) for _ in range(3)] == [1, 2, 3]


def test_what_is_not_served_here_does_not_count() -> None:
    broker = ExampleBroker([BUNDLE])
    assert broker.count(OTHER, everywhere) == 0
    broker.count(ONE, everywhere)
    assert broker.count(ONE, nowhere) == 0
    broker.unload(BUNDLE)
    assert broker.count(ONE, everywhere) == 0
    broker.load(BUNDLE)
    assert broker.count(ONE, everywhere) == 1


def test_a_bundle_that_is_divided_and_merged_keeps_its_topics_and_their_counts() -> None:
    broker = ExampleBroker([BUNDLE])
    names = [f"persistent://t/ns/{n}" for n in range(8)]
    for name in names:
        broker.count(name, everywhere)
    assert set(broker.topics(BUNDLE)) == set(map(position, names))
    broker.split(BUNDLE, HALVES)
    assert broker.bundles() == set(HALVES)
    parts = [set(broker.topics(half)) for half in HALVES]
    assert parts[0] | parts[1] == set(map(position, names))
    assert not parts[0] & parts[1]
    assert all(broker.count(name, everywhere) == 2 for name in names)
    broker.merge(HALVES, BUNDLE)
    assert broker.bundles() == {BUNDLE}
    assert set(broker.topics(BUNDLE)) == parts[0] | parts[1]
    assert all(broker.count(name, everywhere) == 3 for name in names)


def test_the_last_range_has_the_end_of_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.store.ring.position", lambda _topic: 0xFFFFFFFF)
    assert [holds(half, ONE) for half in HALVES] == [False, True]


def test_its_report_is_one_that_the_job_takes() -> None:
    broker = ExampleBroker(HALVES)
    for _ in range(5):
        broker.count(ONE, everywhere)
    told = decode(encode(broker.load_report()))
    busy = [holds(half, ONE) for half in told.bundles]
    assert ((told.stats[0] > 0) == busy).all()
    assert told.traffic[0] == pytest.approx(told.stats[0].sum())


@contextmanager
def running(cluster: str, redis: RedisServer, *own: str) -> Iterator[str]:
    """An example broker in a process of its own, without Kafka; its address."""
    broker = f"{LOOPBACK}:{free_port()}"
    arguments = [cluster, broker, f"{LOOPBACK}:1", redis.url, *(f"--own={each}" for each in own)]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent.example_broker", *arguments], stderr=subprocess.DEVNULL
    )
    try:
        yield broker
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def ask(broker: str, topic: str) -> str:
    """Its answer, empty while nothing listens there."""
    host, _, port = broker.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as line:
            line.sendall(f"{topic}\n".encode())
            return line.makefile().readline().strip()
    except ConnectionError:
        return ""


@pytest.mark.usefixtures("job")
def test_clients_are_served_by_the_owner_and_sent_there_by_others(
    redis_server: RedisServer, cluster: str
) -> None:
    with running(cluster, redis_server, BUNDLE) as owner, running(cluster, redis_server) as other:
        eventually(lambda: ask(owner, ONE) == "1", "the owner serves")
        assert ask(owner, ONE) == "2"
        assert eventually(lambda: ask(other, ONE), "the other answers") == owner
        assert ask(owner, OTHER) == "nobody"
        assert ask(owner, ONE) == "3"
