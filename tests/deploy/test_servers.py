"""The embedded servers keep what they acknowledged, and leave nothing running behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import redis
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process, ServerError
from deploy.redis_server import RedisServer
from deploy.stack import Stack

# Starts a Redis, tells its port, and waits to be ended.
HOST = """
import signal, sys, time
from pathlib import Path
from deploy.stack import Stack

# The process that started the tests may not hear Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Stack(Path(sys.argv[1]), kafka="unused:1") as stack:
    print(stack.redis_url.rsplit(":", 1)[1].split("/")[0], flush=True)
    time.sleep(60)
"""


def no_retries(server: RedisServer) -> redis.Redis:
    return redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0))


def first_record(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        message = consumer.poll(20)
        return message.value() if message and not message.error() else None
    finally:
        consumer.close()


@pytest.mark.e2e
@pytest.mark.slow
def test_kafka_keeps_acknowledged_records_through_a_kill(tmp_path: Path) -> None:
    with KafkaServer(tmp_path) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result()
        producer = Producer({"bootstrap.servers": server.bootstrap, "acks": "all"})
        producer.produce("kept", b"a record")
        assert producer.flush(20) == 0
        del producer, admin
        before = server.pid
        server.kill()
        assert not server.running
        server.start()
        assert server.pid != before
        assert first_record(server.bootstrap, "kept") == b"a record"
    assert not server.running


@pytest.mark.e2e
def test_no_topic_appears_by_misspelling(kafka: KafkaServer) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.list_topics("trimtab.lode-reports", timeout=10)
    assert "trimtab.lode-reports" not in admin.list_topics(timeout=10).topics


def test_redis_keeps_acknowledged_writes_through_a_kill(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("owner", "broker-1")
        server.kill()
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.get("owner") == b"broker-1"


def test_the_redis_password_is_needed_and_readable_by_us_alone(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server, no_retries(server) as stranger:
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()
        for name in ("password", "redis.conf"):
            assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(ServerError, match="Address already in use"):
            RedisServer(tmp_path, port=port).start()


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "other") as other:
        stack = Stack(tmp_path / "mine", kafka="unused:1", redis=other.port)
        with pytest.raises(ServerError, match=f"port {other.port} for Redis is taken"):
            stack.start()


def test_a_stack_leaves_the_users_own_services_alone(tmp_path: Path) -> None:
    with Stack(tmp_path, kafka="broker:9092", redis="redis://store:6379/0") as stack:
        assert (stack.kafka_bootstrap, stack.redis_url) == ("broker:9092", "redis://store:6379/0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        signal.SIGTERM,
        pytest.param(
            signal.SIGKILL,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the child"),
        ),
    ],
)
def test_no_server_outlives_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as host:
        assert host.stdout
        port = int(host.stdout.readline())
        [server] = psutil.Process(host.pid).children()
        os.kill(host.pid, number)
        host.wait(60)
    deadline = time.monotonic() + 10
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"{server} still serves port {port}"
        time.sleep(0.05)


@pytest.mark.parametrize("end", [Process.stop, Process.kill])
def test_a_script_around_a_server_is_ended_with_it(
    end: Callable[[Process], None], tmp_path: Path
) -> None:
    noted = tmp_path / "pid"
    script = f"{sys.executable} -c 'import time; time.sleep(600)' & echo $! > {noted}; wait"
    process = Process(
        "a script", ["sh", "-c", script], folder=tmp_path, log=tmp_path / "log", whole=True
    )
    process.start(lambda: noted.exists() and noted.read_text().endswith("\n"), 60.0)
    server = psutil.Process(int(noted.read_text()))
    end(process)
    gone, _ = psutil.wait_procs([server], timeout=60.0)
    assert gone
