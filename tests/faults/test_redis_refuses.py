"""Redis answers, but takes no writes: full, a replica, without its replicas, its disk broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import redis

from deploy.ports import LOOPBACK, free_port
from tests.faults.disk import failing_disk
from tests.faults.history import forgotten
from tests.faults.table import Row
from tests.faults.world import T_S, World, world
from tests.support.waiting import eventually
from trimtab.wire import keys

ENOUGH: Final = 10
"""Refusals. A full server still renews leases, and refuses the job only, which backs off."""


class Refusal(NamedTuple):
    """``code`` is what its answers begin with."""

    code: str
    begin: Callable[[redis.Redis], object]
    end: Callable[[redis.Redis], object]


FULL = Refusal(
    "OOM",
    lambda client: client.config_set("maxmemory", "1"),
    lambda client: client.config_set("maxmemory", "0"),
)
REPLICA = Refusal(
    "READONLY",
    lambda client: client.replicaof(LOOPBACK, str(free_port())),
    lambda client: client.replicaof("NO", "ONE"),
)
ALONE = Refusal(
    "NOREPLICAS",
    lambda client: client.config_set("min-replicas-to-write", "1"),
    lambda client: client.config_set("min-replicas-to-write", "0"),
)


@pytest.fixture
def it(row: Row, tmp_path: Path, seed: int) -> Iterator[World]:
    with world(row, tmp_path, seed=seed, job_behind=True) as made:
        made.await_moves(3)
        yield made


@pytest.mark.fault(12, "Redis refuses writes")
@pytest.mark.parametrize("refusal", [FULL, REPLICA, ALONE], ids=lambda refusal: refusal.code)
def test_a_redis_that_refuses_writes(it: World, row: Row, refusal: Refusal) -> None:
    it.fault()
    refusal.begin(it.client)
    before, journal = it.records(), it.client.xlen(keys.journal_key(it.cluster))
    eventually(lambda: refusals(it.client, refusal.code) >= ENOUGH, "refusals")
    # A batch that is refused changes nothing; the relay may have deleted entries that Kafka has.
    assert it.records() == before
    assert it.client.xlen(keys.journal_key(it.cluster)) <= journal
    count = refusals(it.client, refusal.code)
    row.note("reply", refusal.code)
    row.note("refused a second", round(count / (it.diary.now() - it.faults[0]), 1))
    refusal.end(it.client)
    it.fault()
    row.note("open s", round(it.await_open(), 1))
    assert not forgotten(before, it.records())
    row.note("gap s", round(it.await_served(), 1))
    await_rounds(it, 2)
    check(it)


@pytest.mark.fault(11, "Redis: its disk fails")
def test_a_redis_that_cannot_sync_each_write_ends(it: World, row: Row) -> None:
    """With `appendfsync always` it has acknowledged what it cannot store."""
    with failing_disk(it.server.pid):
        it.fault()
        eventually(lambda: not it.server.running, "the server's end")
    before = it.job.journalled(it.cluster)
    row.note("appendfsync", "always: it ends")
    with it.job_away():
        it.server.start()
        assert not forgotten(before, it.records())
    row.note("open s", round(it.await_open(), 1))
    it.await_served()
    it.await_moves(2)
    it.check()


@pytest.mark.fault(11, "Redis: its disk fails")
def test_a_redis_that_cannot_sync_now_and_then_refuses_writes(it: World, row: Row) -> None:
    it.client.config_set("appendfsync", "everysec")
    with failing_disk(it.server.pid):
        it.fault()
        eventually(lambda: refusals(it.client, "MISCONF") >= ENOUGH, "refusals")
        before = it.records()
    it.fault()
    row.note("appendfsync", "everysec: it refuses")
    row.note("gap s", round(it.await_served(), 1))
    assert not forgotten(before, it.records())
    await_rounds(it, 2)
    check(it)


def check(it: World) -> None:
    """Hand-overs wait for the fault's end; where leases are refused too, no bundle can be owned."""
    it.check(longest_gap_s=it.faults[1] - it.faults[0] + T_S)


def await_rounds(it: World, more: int) -> None:
    """The job goes on. It may move nothing for long: so many lost leases raise doubt."""
    held = len(it.job.rounds())
    eventually(lambda: len(it.job.rounds()) >= held + more, "rounds")


def refusals(client: redis.Redis, code: str) -> int:
    """How often the server has refused with that code since it started."""
    # Any: redis-py's answers are unions over protocols.
    told: Any = client.info("errorstats")
    return int(told.get(f"errorstat_{code}", {"count": 0})["count"])
