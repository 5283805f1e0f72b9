"""A driver that hangs is ended by its watchdog and followed by the one that stands by."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil
import pytest

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.publisher import Outgoing, Publisher
from streaming.shutdown import FAILED, FENCED, OK, STUCK
from tests.faults.table import Row
from tests.support.jobs import write_settings
from tests.support.reports import bundle
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

PATIENCE: Final = 240.0

JOB: Final = "from streaming.job import main; main()"
HANGING: Final = """
import threading
from streaming.query.batch import BatchWriter
write = BatchWriter.__call__
def hang(self, frame, number):
    threading.Event().wait() if self._opener.clusters else write(self, frame, number)
BatchWriter.__call__ = hang
"""
"""In the first batch after the one that opens the store."""

RAISING: Final = """
from streaming.query.batch import BatchWriter
write, raised = BatchWriter.__call__, []
def fail(self, frame, number):
    write(self, frame, number)
    if self._opener.clusters and len(raised) < 3:
        raised.append(number)
        raise RuntimeError("on purpose")
BatchWriter.__call__ = fail
"""
"""In the first batch that opens the store, after its effects, and twice when it is repeated."""


@dataclass
class Running:
    """A driver in a session, and so a process group, of its own."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def await_word(self, word: str) -> None:
        eventually(
            lambda: word in self.said() or self.process.poll() is not None, word, PATIENCE, 0.2
        )
        assert word in self.said(), self.said()[-3000:]

    def family(self) -> list[psutil.Process]:
        """Its JVM, and the JVM's Python workers."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def ended(self) -> int:
        """Its exit code, once there is one."""
        return self.process.wait(PATIENCE)


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A Kafka without the clusters of other tests, which these drivers would take over."""
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis without them."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def start(tmp_path: Path, kafka: KafkaServer, redis_server: RedisServer) -> Iterator[Start]:
    """Starts drivers on one checkpoint."""
    settings = write_settings(tmp_path, kafka.bootstrap, redis_server.url)
    with ExitStack() as stack:

        def start(name: str, *options: str, before: str = "", **environment: str) -> Running:
            command = [sys.executable, "-c", before + JOB, "--config", str(settings), *options]
            log = tmp_path / f"{name}.log"
            return stack.enter_context(child(command, log, {**os.environ, **environment}))

        yield start


@contextmanager
def child(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with process:
        try:
            yield Running(process, log)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.fault(33, "foreachBatch hangs")
def test_a_driver_that_hangs_is_ended_with_its_jvm_and_followed(
    start: Start, kafka: KafkaServer, row: Row
) -> None:
    hung = start("hung", before=HANGING, TRIMTAB_WATCHDOG_SECONDS="20")
    hung.await_word("query started")
    report(kafka)
    hung.await_word("ownership store is open")
    standby = start("standby", "--standby", TRIMTAB_TAKEOVER_SECONDS="6")
    report(kafka)
    family = hung.family()
    assert any("java" in process.name() for process in family), family

    at = time.monotonic()
    assert hung.ended() == STUCK
    row.note("detected s", round(time.monotonic() - at, 1))
    assert re.search(r"nothing has moved .* batch \d+ began", hung.said())
    psutil.wait_procs(family, timeout=PATIENCE)
    assert not [process for process in family if process.is_running()]

    standby.await_word("ownership store is open")
    row.note("taken over s", round(time.monotonic() - at, 1))
    assert standby.said().index("standing by") < standby.said().index("taking over")
    [jvm] = psutil.Process(standby.process.pid).children()
    jvm.kill()
    assert standby.ended() == FAILED, standby.said()[-3000:]
    assert "JVM is gone" in standby.said()


@pytest.mark.slow
def test_drivers_that_are_fenced_or_told_to_end_while_they_stand_by(
    start: Start, tmp_path: Path
) -> None:
    with notified(tmp_path) as told:
        first = start("first", NOTIFY_SOCKET=told.getsockname())
        first.await_word("query started")
        start("second")
        assert first.ended() == FENCED, first.said()[-3000:]
        assert told.recv(100).startswith(b"READY=1\nSTATUS=active")
        assert told.recv(100) == b"WATCHDOG=1"

    with notified(tmp_path) as told:
        standby = start("standby", "--standby", NOTIFY_SOCKET=told.getsockname())
        standby.await_word("standing by")
        assert told.recv(100) == b"READY=1\nSTATUS=standing by"
        assert told.recv(100) == b"WATCHDOG=1"
        standby.process.terminate()
        assert standby.ended() == OK
    assert "taking over" not in standby.said()


@contextmanager
def notified(folder: Path) -> Iterator[socket.socket]:
    """The socket on which systemd listens to a job."""
    path = folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        listening.settimeout(PATIENCE)
        yield listening
    path.unlink()


@pytest.mark.slow
@pytest.mark.fault(34, "foreachBatch raises")
def test_a_batch_that_raises_is_tried_again_after_longer_and_longer(
    start: Start, kafka: KafkaServer, tmp_path: Path, row: Row
) -> None:
    raising = start("raising", before=RAISING)
    raising.await_word("query started")
    report(kafka)
    eventually(lambda: raising.said().count("query failed") == 3, "three failures", PATIENCE, 0.2)
    said = re.findall(r"query failed .*on purpose.* restart_seconds=([0-9.]+)", raising.said())
    pauses = [float(pause) for pause in said]
    begun = max(map(int, names(tmp_path / "checkpoint" / "offsets")))
    eventually(
        lambda: str(begun) in names(tmp_path / "checkpoint" / "commits"), "the batch", PATIENCE
    )
    row.note("pauses s", " ".join(said))
    assert [later / earlier for earlier, later in pairwise(pauses)] == [2.0, 2.0]
    assert raising.process.poll() is None
    # As a terminal or a container does it: to Python, the JVM and the workers at once.
    os.killpg(raising.process.pid, signal.SIGTERM)
    assert raising.ended() == OK, raising.said()[-3000:]


def names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.name.isdecimal()]


def report(kafka: KafkaServer) -> None:
    stats = {bundle(0, 2): BundleStats(msg_rate_in=1.0, topics=1)}
    data = LocalBrokerData(last_stats=stats, bundles=list(stats), start_timestamp=1)
    Publisher(kafka.bootstrap).publish(
        [Outgoing(keys.LOAD_REPORTS, "two-drivers/a:1", encode(data))]
    )
