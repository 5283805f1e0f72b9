"""A driver killed with kill -9 in the middle of a batch repeats it and does nothing twice."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import redis
from confluent_kafka import Producer

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.load_model import load_model
from simulation.profile import Profile
from simulation.replay.batches import distinct
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import redis_client
from streaming.config import JobConfig, load_config
from streaming.query.reports.rounds_due import FILE
from tests.faults.table import Row
from tests.support.jobs import Driver, write_settings
from tests.support.seesaw import Seesaw
from tests.support.verdicts import assert_nothing_was_done_twice, replayed
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

CLUSTER = "killed"
KILLS = 20
ENOUGH = 20
"""Moves after which doing one twice would show."""
FLEET = Profile(brokers=4, bundles=32, namespaces=4, low=0.3, high=0.7, seed=7)


@dataclass
class Bench:
    """The services, the job and a fleet, and what they have left behind."""

    kafka: KafkaServer
    client: redis.Redis
    config: JobConfig
    driver: Driver
    topics: RecordedTopics
    folders: Path
    """Where each start of the driver has the folder for its working files."""
    recoveries: list[float] = field(default_factory=list)
    """Seconds from each start of the driver to its first command."""
    _ends: dict[int, int] = field(default_factory=dict)

    def begun(self, number: int) -> bool:
        """Always true: only the batch's offsets are written."""
        return number >= 0

    def applied(self, number: int) -> bool:
        """Whether Redis has carried out what the batch decided."""
        # Any: redis-py's answers are unions over protocols. There is only one query.
        found: Any = self.client.hvals(keys.applied_key(CLUSTER))
        return any(value.startswith(b"%d " % number) for value in found)

    def recorded(self, number: int) -> bool:
        """Whether Kafka has the batch's record, that is one more than when the batch was first
        seen."""
        end = self.topics.end(keys.ROUNDS)
        return end > self._ends.setdefault(number, end)

    def kill_once(self, reached: Callable[[int], bool]) -> int:
        """Kill the driver in a batch that has come this far; returns the batch's number."""
        while True:
            self.start()
            self.driver.await_batches(4)

            def hit() -> bool:
                number = self.driver.under_way()
                return number is not None and reached(number)

            eventually(hit, f"a batch that is {reached.__name__}", 300.0, pause=0.0005)
            self.driver.kill()
            # It may have been committed just before the kill: then try again.
            if (number := self.driver.under_way()) is not None:
                return number

    def start(self) -> None:
        """Start the driver, and wait for the first commands that it issues."""
        before, began = self.topics.end(keys.COMMANDS), time.monotonic()
        self.driver.start()
        eventually(lambda: self.topics.end(keys.COMMANDS) > before, "a command", 300.0)
        self.recoveries.append(time.monotonic() - began)

    def moves(self) -> int:
        """How many moves the rounds on record have made."""
        rounds = (each for batch in distinct(self.topics.batches()) for each in batch.rounds)
        return sum(len(each.moves) for each in rounds)

    def come_to_rest(self) -> None:
        """Pause the rounds, wait until the last moves are over, and stop the job."""
        pause = Intent(id="rest", kind=IntentKind.PAUSE, cluster=CLUSTER)
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
        producer.produce(keys.CONTROL, key=CLUSTER, value=msgspec.json.encode(pause))
        assert producer.flush(10) == 0
        eventually(self._resting, "paused rounds and an empty journal", 300.0)
        self.driver.await_batches(3)
        self.driver.stop()

    def _resting(self) -> bool:
        rounds = [each for batch in self.topics.newest_batches(20) for each in batch.rounds]
        relayed = self.client.xlen(keys.journal_key(CLUSTER)) == 0
        return bool(rounds) and rounds[-1].skipped == "paused" and relayed


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    jars.fetch()
    with (
        TemporaryDirectory() as temporary,
        KafkaServer(tmp_path / "kafka") as kafka,
        RedisServer(tmp_path / "redis") as server,
        redis_client(server.url) as client,
        closing(RecordedTopics(kafka.bootstrap)) as topics,
        Seesaw(load_model(FLEET), kafka.bootstrap, server.url, CLUSTER),
    ):
        ensure_topics(kafka.bootstrap)
        settings = write_settings(tmp_path, kafka.bootstrap, server.url)
        driver = Driver(tmp_path, settings, TMPDIR=temporary)
        folders = Path(temporary, f"trimtab-{os.getuid()}")
        yield Bench(kafka, client, load_config(settings), driver, topics, folders)
        if driver.running:
            driver.kill()


def test_a_driver_killed_once(bench: Bench) -> None:
    killed = bench.kill_once(bench.applied)
    finish(bench, {killed})


@pytest.mark.fault(3, "driver killed twenty times, anywhere in a batch")
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_driver_killed_twenty_times(bench: Bench, row: Row, rng: Random) -> None:
    moments = rng.choices((bench.begun, bench.applied, bench.recorded), k=KILLS)
    killed = [bench.kill_once(moment) for moment in moments]
    # A batch that has only begun may turn out to be empty, and is not recorded then.
    told = {n for n, moment in zip(killed, moments, strict=True) if moment != bench.begun}
    finish(bench, told, kills=KILLS)
    row.holds("I3", [])
    row.note("kills", KILLS)
    # Not the first start: an empty store stays closed for a while.
    typical = median(bench.recoveries[1:])
    row.note("command after a start, median s", round(typical, 1))
    row.note("longest s", round(max(bench.recoveries), 1))


def finish(bench: Bench, told: set[int], kills: int = 1) -> None:
    """One more start, then everything that was left behind is compared; ``told`` are killed batches
    that had something to say."""
    bench.start()
    bench.driver.await_batches(8)
    # How many moves eight batches make depends on the machine.
    eventually(lambda: bench.moves() > ENOUGH, "moves to compare", 300.0)
    # The driver that runs has deleted what the killed ones left, and deletes its own.
    assert len([*bench.folders.iterdir()]) == 1
    assert [*bench.folders.rglob(FILE)], "the source of reports does not know which rounds are due"
    bench.come_to_rest()
    assert [*bench.folders.iterdir()] == []
    batches = bench.topics.batches()
    repeated = {n for n, times in Counter(b.batch for b in batches).items() if times > 1}
    moves = bench.moves()
    print(f"{len(batches)} records, {moves} moves; killed in {told}, repeated {sorted(repeated)}")
    assert told <= {batch.batch for batch in batches}
    assert len({batch.query for batch in batches}) == 1
    assert len({batch.generation for batch in batches}) > kills
    replayed(bench.topics, bench.config, batches[0].query)
    assert_nothing_was_done_twice(bench.topics, bench.client, CLUSTER)
