"""What the job remembers in files and topics is damaged, full or gone: it ends with what to do.

Every loss is reported, and no job holds a claim without working.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import redis
from confluent_kafka.admin import AdminClient

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.generation import claim
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import redis_client
from streaming.shutdown import FAILED
from tests.faults.table import Row
from tests.support.jobs import Driver, write_settings
from tests.support.reports import bundle
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.slow,
]

CLUSTER: Final = "lost"
PATIENCE_S: Final = 400.0


@dataclass
class Place:
    """Services of one test, and a job with a checkpoint."""

    kafka: KafkaServer
    client: redis.Redis
    driver: Driver
    _sequence: Iterator[int] = field(default_factory=lambda: count(1))

    def report(self) -> None:
        stats = {bundle(0, 2): BundleStats(msg_rate_in=1.0, topics=1)}
        data = LocalBrokerData(last_stats=stats, bundles=list(stats), start_timestamp=1)
        number = b"%d" % next(self._sequence)
        headers = ((keys.SESSION_HEADER, b"1"), (keys.SEQUENCE_HEADER, number))
        said = Outgoing(keys.LOAD_REPORTS, f"{CLUSTER}/a:1", encode(data), headers)
        Publisher(self.kafka.bootstrap).publish([said])

    def opened_to(self) -> int:
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        found: Any = self.client.hget(keys.open_key(CLUSTER), "generation")
        return int(found or 0)

    def begin(self) -> int:
        """Start the job and wait until it has opened the store; returns the generation."""
        before = self.opened_to()
        self.driver.start()
        self.report()
        eventually(
            lambda: self.opened_to() > before or not self.driver.running, "it opens", PATIENCE_S
        )
        assert self.driver.running, self.driver.said()[-3000:]
        self.driver.await_batches(2, PATIENCE_S)
        return self.opened_to()

    def ends(self, row: Row) -> str:
        """Wait until the job ends by itself; returns the line that says why."""
        at = time.monotonic()
        assert self.driver.ended(PATIENCE_S) == FAILED, self.driver.said()[-3000:]
        row.note("told after s", round(time.monotonic() - at, 1))
        said = self.driver.said().splitlines()
        return [line for line in said if "the job ends" in line or "nothing was started" in line][
            -1
        ]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    jars.fetch()
    with (
        KafkaServer(tmp_path / "kafka") as kafka,
        RedisServer(tmp_path / "redis") as server,
        redis_client(server.url) as client,
    ):
        ensure_topics(kafka.bootstrap)
        driver = Driver(tmp_path, write_settings(tmp_path, kafka.bootstrap, server.url))
        yield Place(kafka, client, driver)
        if driver.running:
            driver.kill()


def recreate(kafka: KafkaServer, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in admin.delete_topics([topic]).values():
        done.result()
    eventually(lambda: topic not in admin.list_topics(timeout=5).topics, "no topic", 30.0)
    ensure_topics(kafka.bootstrap)


@pytest.mark.fault(14, "topic of claims recreated")
def test_claims_that_kafka_has_lost(place: Place, row: Row) -> None:
    ahead = 1 << 34  # ahead of any clock; a new topic starts by the clock
    claim(place.kafka.bootstrap, "trimtab-job", above=ahead).close()
    before = place.begin()
    assert before > ahead
    place.driver.stop()

    recreate(place.kafka, keys.GENERATIONS)
    after = place.begin()
    place.driver.stop()

    row.note("generation before", before)
    row.note("after", after)
    assert "new generation" in place.driver.said()
    row.holds("generations only grow", [] if after > before else [(before, after)])


@pytest.mark.fault(14, "topic of reports recreated while the job runs")
def test_reports_that_kafka_has_lost(place: Place, row: Row) -> None:
    place.begin()
    recreate(place.kafka, keys.LOAD_REPORTS)
    assert re.search(r"trimtab.load-reports/\d up to \d+, which ends at 0 now", place.ends(row))

    place.driver.start()
    refused = place.ends(row)
    assert "nothing was started" in refused
    assert "a job without one starts over" in refused

    shutil.rmtree(place.driver.checkpoint)
    place.begin()
    place.driver.stop()
    row.holds("no silent skip", [])


@pytest.mark.fault(30, "checkpoint damaged")
def test_a_damaged_checkpoint(place: Place, row: Row) -> None:
    place.begin()
    place.driver.stop()
    for file in (place.driver.checkpoint / "state").rglob("*"):
        if file.suffix in (".zip", ".changelog", ".sst"):
            content = file.read_bytes()
            file.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    place.driver.start()
    said = place.ends(row)
    assert f"the checkpoint {place.driver.checkpoint} cannot be read: move it away" in said

    shutil.rmtree(place.driver.checkpoint)
    place.begin()
    place.driver.stop()
    row.holds("fails fast", [])


@pytest.mark.fault(30, "disk of the checkpoint full")
def test_a_full_disk(place: Place, row: Row) -> None:
    with small_disk(place.driver.checkpoint):
        place.begin()
        filler = place.driver.checkpoint / "filler"
        fill(filler)
        assert "cannot be written: No space left on device; make room" in place.ends(row)
        place.driver.start()
        assert "nothing was started" in place.ends(row)

        filler.unlink()
        place.begin()
        place.driver.stop()
    row.holds("fails fast", [])


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system of its own: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(4096))
        except OSError:
            return
