"""The driver, or what it runs on, killed in the middle of its work: nothing is done twice or lost.

One fleet and one checkpoint for all rows; each leaves behind what the next one begins with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import psutil
import pytest

from sinks.redis.scripts import hints_script, open_script, transition_script
from tests.faults.bench import BATCHES, PATIENCE_S, Bench, bench, repeated
from tests.faults.table import Row
from tests.support.jobs import Driver
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.wire import keys

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.slow,
    # kafka-python, in the agents, leaves sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("bench"), "driver") as made:
        yield made


@pytest.fixture
def it(shared: Bench) -> Iterator[Bench]:
    yield shared
    for driver in shared.drivers:
        if driver.running:
            driver.kill()
    shared.link.cut()
    shared.link.mend()


def begun(it: Bench, driver: Driver) -> float:
    """Wait until the driver works and the fleet is restless; returns when that was."""
    driver.start()
    it.go()
    driver.await_batches(BATCHES, PATIENCE_S)
    it.await_served()
    return it.diary.now()


def ended(it: Bench, row: Row, driver: Driver, since: float) -> None:
    """After a fault the driver has worked on."""
    it.await_moves(3)
    it.check(row, driver, since)
    assert_nothing_was_done_twice(it.topics, it.client, it.cluster)
    row.holds("once", [])
    row.note("batches repeated", repeated(it.batches()))


def started_again(row: Row, driver: Driver) -> None:
    """Start the driver after a kill, and note how long nothing was decided."""
    before = driver.committed()
    at = time.monotonic()
    driver.start()
    eventually(
        lambda: not driver.running or driver.committed() > before, "a batch", PATIENCE_S, 0.02
    )
    assert driver.running, driver.said()[-3000:]
    row.note("recovery s", round(time.monotonic() - at, 1))


@pytest.mark.fault(1, "driver killed between batches")
def test_between_batches(it: Bench, row: Row) -> None:
    driver = it.driver()
    since = begun(it, driver)
    while True:
        eventually(lambda: driver.under_way() is None, "a pause", PATIENCE_S, 0.0005)
        driver.kill()
        if driver.under_way() is None:
            break
        driver.start()
        driver.await_batches(2, PATIENCE_S)
    started_again(row, driver)
    ended(it, row, driver, since)


@pytest.mark.fault(2, "driver killed after its effects, before the commit")
def test_before_the_commit(it: Bench, row: Row) -> None:
    driver = it.driver()
    since = begun(it, driver)
    again = repeated(it.batches())
    kill_where_recorded(it, driver)
    row.note("commit taken back", uncommit(driver))
    started_again(row, driver)
    ended(it, row, driver, since)
    row.note("executed twice", repeated(it.batches()) - again)
    assert repeated(it.batches()) > again


def kill_where_recorded(it: Bench, driver: Driver) -> None:
    ends: dict[int, int] = {}
    # Looked up beforehand: the commit comes a few milliseconds later.
    family = driver.family()

    def hit() -> bool:
        number, end = driver.under_way(), it.topics.end(keys.ROUNDS)
        return number is not None and end > ends.setdefault(number, end)

    eventually(hit, "a batch that is recorded", PATIENCE_S, 0.0005)
    for process in reversed(family):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    driver.kill()


def uncommit(driver: Driver) -> str:
    """Undo a commit that was made just before the kill, as if the kill had prevented it.

    Spark repeats the last batch that it has offsets of and no commit.
    """
    if driver.under_way() is not None:
        return "no"
    last = driver.committed()
    for name in (str(last), f".{last}.crc"):
        (driver.checkpoint / "commits" / name).unlink(missing_ok=True)
    return "yes"


@pytest.mark.fault(3, "driver killed within its effects")
@pytest.mark.parametrize("delivered", [False, True], ids=["lost", "delivered"])
def test_within_the_effects(it: Bench, row: Row, rng: Random, delivered: bool) -> None:
    driver = it.driver(behind=True)
    since = begun(it, driver)
    scripts = {
        name: script.sha.encode()
        for name, script in (
            ("open", open_script()),
            ("hints", hints_script()),
            ("transition", transition_script()),
        )
    }
    chosen = rng.choice(sorted(scripts)) if delivered else "transition"
    hit = threading.Event()

    def seen(data: bytes) -> None:
        if scripts[chosen] in data and not hit.is_set():
            hit.set()
            driver.kill()
            if not delivered:
                raise ConnectionError("the call dies with its caller")

    it.link.up.seen = seen
    eventually(lambda: hit.is_set() and not driver.running, "the call", PATIENCE_S, 0.01)
    it.link.up.seen = None
    row.note("in", chosen)
    row.note("call", "delivered" if delivered else "lost")
    started_again(row, driver)
    ended(it, row, driver, since)


@pytest.mark.fault(4, "Python workers and their daemon killed")
def test_python_workers(it: Bench, row: Row) -> None:
    driver = it.driver()
    since = begun(it, driver)
    workers = [p for p in driver.family()[1:] if "python" in process_name(p)]
    assert workers
    at, before = time.monotonic(), driver.committed()
    # The daemon is the oldest, and its workers' parent.
    for process in reversed(workers):
        process.kill()
    eventually(lambda: driver.committed() > before + 1, "two more batches", PATIENCE_S, 0.02)
    row.note("killed", len(workers))
    row.note("batch delay s", round(time.monotonic() - at, 1))
    assert driver.running
    ended(it, row, driver, since)
    row.note("restarts of the query", driver.said().count("query failed"))


@pytest.mark.fault(13, "Kafka: kill -9")
@pytest.mark.parametrize("seconds", [8.0, 30.0])
def test_kafka_killed(it: Bench, row: Row, seconds: float) -> None:
    driver = it.driver()
    since = begun(it, driver)
    it.await_moves(1)
    it.kafka.kill()
    acknowledged = it.outbox.counts().delivered
    at, before = time.monotonic(), driver.committed()
    time.sleep(seconds)
    it.kafka.start()
    eventually(
        lambda: not driver.running or driver.committed() > before + 1, "a batch", PATIENCE_S, 0.05
    )
    assert driver.running, driver.said()[-3000:]
    row.note("away s", seconds)
    row.note("gap s", round(time.monotonic() - at, 1))
    lost = max(0, acknowledged - it.reports())
    row.note("reports lost", lost)
    row.holds("reports", ["lost"] * lost)
    it.await_reports(acknowledged + 40)
    ended(it, row, driver, since)


def process_name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


@pytest.mark.fault(5, "executor lost")
def test_an_executor_killed(tmp_path_factory: pytest.TempPathFactory, row: Row) -> None:
    with bench(tmp_path_factory.mktemp("apart"), "apart") as it:
        driver = it.driver(spark={"master": "local-cluster[2,1,1024]"})
        since = begun(it, driver)
        executors = [p for p in driver.family()[1:] if is_executor(p)]
        assert len(executors) == 2
        at, before = time.monotonic(), driver.committed()
        executors[0].kill()
        eventually(
            lambda: not driver.running or driver.committed() > before + 1, "a batch", PATIENCE_S
        )
        assert driver.running, driver.said()[-3000:]
        row.note("batch delay s", round(time.monotonic() - at, 1))
        ended(it, row, driver, since)


def is_executor(process: psutil.Process) -> bool:
    try:
        return any("CoarseGrainedExecutorBackend" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
