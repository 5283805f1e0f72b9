"""Two drivers at once, or one without its Redis or its checkpoint: one acts, and the other ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.shutdown import FENCED, UNREACHABLE
from tests.faults.bench import BATCHES, PATIENCE_S, Bench, bench, repeated
from tests.faults.table import Row
from tests.support.commands import published
from tests.support.jobs import Driver
from tests.support.waiting import eventually
from trimtab.ownership import Event
from trimtab.wire import keys

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path, "two") as made:
        yield made


def begun(it: Bench, driver: Driver) -> float:
    """Wait until the driver works and the fleet is restless; returns when that was."""
    driver.start()
    driver.await_batches(BATCHES, PATIENCE_S)
    it.await_served()
    it.await_moves(1)
    return it.diary.now()


def generation(it: Bench) -> int:
    """The generation of the newest batch that was recorded."""
    return it.topics.newest_batches(2)[-1].generation


def await_successor(it: Bench, of: int) -> None:
    eventually(lambda: generation(it) > of, "batches of a newer job", PATIENCE_S, 0.2)


def late_commands(it: Bench) -> list[str]:
    """Commands of a generation that were issued after a newer one had issued some."""
    newest, late = 0, []
    told = [c for c in published(it.topics.all(keys.COMMANDS)) if c.cluster == it.cluster]
    for command in sorted(told, key=lambda command: command.issued_at):
        if command.generation < newest:
            late.append(command.id)
        newest = max(newest, command.generation)
    return late


def refused_as_old(it: Bench, acted: int, last: int) -> int:
    """Moves that a newer job than ``acted`` decided up to batch ``last`` and could not write."""
    new = [batch for batch in it.batches() if batch.generation > acted and batch.batch <= last]
    planned = sum(len(record.moves) for batch in new for record in batch.rounds)
    names = {f"{batch.query}/{batch.batch}" for batch in new}
    written = [
        change
        for change in it.changes()
        if change.event is Event.TRANSFER
        and change.record.epoch.generation > acted
        and "/".join(change.record.by.split("/")[-3:-1]) in names
    ]
    return planned - len(written)


@pytest.mark.fault(16, "driver parted from Redis, brokers not")
def test_a_driver_that_is_parted_from_redis(it: Bench, row: Row) -> None:
    first = it.driver(behind=True, TRIMTAB_YIELD_SECONDS="5")
    since = begun(it, first)
    second = it.driver("--standby", TRIMTAB_TAKEOVER_SECONDS="6")
    second.start()
    eventually(lambda: "standing by" in second.said(), "a standby", PATIENCE_S, 0.2)
    acted = generation(it)
    it.link.hold()
    at = time.monotonic()
    code = first.ended(PATIENCE_S)
    row.note("first ended", code)
    row.note("after s", round(time.monotonic() - at, 1))
    await_successor(it, acted)
    row.note("taken over s", round(time.monotonic() - at, 1))
    it.link.release()
    assert code in (UNREACHABLE, FENCED)
    it.await_moves(2)
    row.holds("fenced", late_commands(it))
    it.check(row, second, since)


@pytest.mark.fault(23, "two drivers, one checkpoint")
def test_two_drivers_of_one_checkpoint(it: Bench, row: Row) -> None:
    first = it.driver()
    since = begun(it, first)
    acted, again = generation(it), repeated(it.batches())
    second = it.driver()
    second.start()
    code = first.ended(PATIENCE_S)
    row.note("first ended", code)
    await_successor(it, acted)
    it.await_moves(2)
    row.note("batches repeated", repeated(it.batches()) - again)
    row.holds("fenced", late_commands(it))
    assert code == FENCED, first.said()[-3000:]
    it.check(row, second, since)


@pytest.mark.fault(24, "two drivers, a copied checkpoint")
def test_two_drivers_of_two_checkpoints(it: Bench, row: Row, tmp_path: Path) -> None:
    first = it.driver()
    since = begun(it, first)
    first.stop()
    copy = tmp_path / "copy"
    shutil.copytree(first.checkpoint, copy / "checkpoint")
    behind = first.committed()
    # The original goes on, past where the copy begins: their batches have the same names.
    first.start()
    first.await_batches(BATCHES, PATIENCE_S)
    it.await_moves(2)
    acted = generation(it)
    second = it.driver(folder=copy)
    second.start()
    code = first.ended(PATIENCE_S)
    row.note("first ended", code)
    row.note("batches behind", first.committed() - behind)
    await_successor(it, acted)
    second.await_batches(first.committed() - behind + BATCHES, PATIENCE_S)
    it.await_moves(2)
    assert code == FENCED, first.said()[-3000:]
    late = late_commands(it)
    row.note("loser's commands", len(late))
    row.holds("fenced", late)
    it.check(row, second, since, one_history=False)
    row.note("refused as old", refused_as_old(it, acted, first.committed()))


@pytest.mark.fault(25, "a paused driver wakes up")
def test_a_driver_that_slept_through_its_succession(it: Bench, row: Row) -> None:
    first = it.driver()
    since = begun(it, first)
    second = it.driver("--standby", TRIMTAB_TAKEOVER_SECONDS="6")
    second.start()
    eventually(lambda: "standing by" in second.said(), "a standby", PATIENCE_S, 0.2)
    acted = generation(it)
    first.freeze()
    at = time.monotonic()
    await_successor(it, acted)
    row.note("taken over s", round(time.monotonic() - at, 1))
    it.await_moves(2)
    first.thaw()
    at = time.monotonic()
    code = first.ended(PATIENCE_S)
    row.note("zombie ended", code)
    row.note("after s", round(time.monotonic() - at, 1))
    assert code == FENCED, first.said()[-3000:]
    it.await_moves(1)
    late = late_commands(it)
    row.note("zombie's commands", len(late))
    row.holds("fenced", late)
    it.check(row, second, since)


@pytest.mark.fault(29, "checkpoint deleted")
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_checkpoint_that_is_gone(it: Bench, row: Row, running: bool) -> None:
    first = it.driver()
    since = begun(it, first)
    query = it.batches()[-1].query
    if running:
        # At once: the job writes to it meanwhile, and a folder that is not empty stays.
        shutil.rmtree(first.checkpoint.rename(first.checkpoint.with_name("gone")))
        eventually(
            lambda: not first.running or "query failed" in first.said(), "a failure", PATIENCE_S
        )
        row.note("says", "query failed" if first.running else "ended")
    if first.running:
        first.stop()
    shutil.rmtree(first.checkpoint, ignore_errors=True)
    before, known = len(it.changes()), it.records()
    second = it.driver()
    second.start()
    eventually(lambda: it.batches()[-1].query != query, "a new query", PATIENCE_S, 0.3)
    second.await_batches(BATCHES, PATIENCE_S)
    new = it.changes()[before:]
    row.note("while", "running" if running else "stopped")
    row.note("repairs", sum(change.event is Event.ASSIGN for change in new))
    assert not [change for change in new if change.event is Event.ASSIGN]
    rounds = [each for batch in it.batches() if batch.query != query for each in batch.rounds]
    most = max(len(each.moves) for each in rounds)
    row.note("most moves of a round", most)
    # The fleet is not taken for a new one.
    assert most < len(known) / 2
    it.await_moves(2)
    it.check(row, second, since)
