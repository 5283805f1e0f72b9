"""Redis killed, rolled back, emptied, hung and failed over, under a fleet that never rests."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.errors import Closed
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.scripts import transition_script
from sinks.redis.server.connections import redis_client
from tests.faults.history import forgotten
from tests.faults.proxy import Proxy
from tests.faults.table import Row
from tests.faults.world import LEASE_S, T_S, World, world
from tests.support.waiting import eventually
from trimtab.doubt import Doubt
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.intent import Intent
from trimtab.wire.intent import IntentKind as Asked
from trimtab.wire.ownership import Transition


@pytest.fixture
def it(row: Row, tmp_path: Path, seed: int) -> Iterator[World]:
    with world(row, tmp_path, seed=seed, job_behind=True) as made:
        made.await_moves(3)
        yield made


@pytest.mark.fault(6, "Redis: kill -9, AOF on")
def test_a_killed_redis_has_lost_nothing(it: World, row: Row) -> None:
    before = it.records()
    it.fault()
    it.server.kill()
    with it.job_away():
        it.server.start()
        assert not forgotten(before, it.records())
        assert_closed(it)
    row.note("gap s", round(it.await_moves(2), 1))
    it.check()


@pytest.mark.fault(7, "Redis: the AOF's tail lost")
def test_what_redis_lost_is_put_back(it: World, row: Row, rng: Random) -> None:
    before = it.records()
    it.fault()
    it.server.kill()
    (tail,) = (it.server.folder / "appendonlydir").glob("*.incr.aof")
    os.truncate(tail, tail.stat().st_size - rng.randrange(6_000, 12_000))
    with it.job_away():
        it.server.start()
        lost = forgotten(before, it.records())
        assert lost
        assert_closed(it)
    row.note("records lost", len(lost))
    row.note("repair s", round(it.await_open(), 1))
    assert not forgotten(before, it.records())
    assert Doubt.UNSTABLE in doubts(it)
    it.await_moves(2)
    it.check()


@pytest.mark.fault(8, "Redis: empty")
def test_an_empty_redis_is_filled_before_anything_moves(it: World, row: Row) -> None:
    before, changes = it.records(), len(it.job.changes())
    it.fault()
    it.server.kill()
    shutil.rmtree(it.server.folder / "appendonlydir")
    with it.job_away():
        it.server.start()
        assert not it.records()
    rebuilt = it.await_open()
    row.note("rebuild s", round(rebuilt, 1))
    assert not forgotten(before, it.records())
    # While there was no record at all, no bundle was taken for one without an owner.
    events = Counter(change.event for change in it.job.changes()[changes:])
    row.note("repairs", events[Event.ASSIGN])
    assert not events[Event.ASSIGN]
    assert Doubt.UNSTABLE in doubts(it)
    it.await_moves(2)
    # Hand-overs that were under way wait for the rebuild.
    it.check(longest_gap_s=rebuilt + T_S)


@pytest.mark.fault(10, "Redis: SIGSTOP")
@pytest.mark.parametrize(
    "seconds",
    [pytest.param(LEASE_S + 2), pytest.param(60.0, marks=pytest.mark.slow)],
)
def test_a_redis_that_hangs(it: World, row: Row, seconds: float) -> None:
    it.fault()
    os.kill(it.server.pid, signal.SIGSTOP)
    try:
        eventually(lambda: it.diary.now() - it.faults[0] > seconds, "its time", seconds + 5)
    finally:
        os.kill(it.server.pid, signal.SIGCONT)
    it.fault()
    row.note("gap s", round(it.await_served(), 1))
    it.await_moves(2)
    longest = max(node.longest_call_s for node in it.nodes.values())
    row.note("longest call s", round(longest, 1))
    applied = Counter((c.bundle, c.record.by, c.event) for c in it.job.changes())
    twice = [each for each, times in applied.items() if times > 1 and each[2] != Event.RETIRE]
    row.note("applied twice", len(twice))
    row.holds("once", twice)
    # No broker can own a bundle while no lease can be renewed.
    it.check(excused=(it.faults[0], it.faults[1]))


@pytest.mark.fault(9, "Redis: failover that loses its last writes")
@pytest.mark.parametrize("mode", ["async", "min-replicas"])
@pytest.mark.slow
def test_a_failover_that_loses_writes(row: Row, tmp_path: Path, seed: int, mode: str) -> None:
    narrow = ("min-replicas-to-write 1", "min-replicas-max-lag 2") if mode != "async" else ()
    with ExitStack() as stack:
        it = stack.enter_context(world(row, tmp_path, seed=seed, behind=None, job_behind=True))
        other, way = stack.enter_context(replica(it, tmp_path))
        for line in narrow:
            it.client.config_set(*line.split())
        it.await_moves(3)
        generation = it.job.leadership.generation
        way.hold()
        if narrow:
            # A master without its replica renews no lease.
            it.fault()
        moved = it.moves()
        with suppress(AssertionError):
            # Refused once the replica is too far behind.
            eventually(lambda: it.moves() >= moved + 3, "3 moves that the replica misses", 5.0)
        before = it.records()
        it.fault()
        # What the proxy holds is lost; a replica that is only stopped would get it later.
        way.cut()
        it.server.kill()
        with redis_client(other.url) as promoted:
            promoted.execute_command("REPLICAOF", "NO", "ONE")
            lost = forgotten(before, OwnershipStore(promoted).records(it.cluster))
        it.link.cut()
        it.link.target = other.port
        it.link.mend()
        row.note("mode", mode)
        row.note("acknowledged, then lost", len(lost))
        row.note("repair s", round(it.await_open(), 1))
        assert lost or narrow
        assert not forgotten(before, it.records())
        assert it.job.leadership.generation > generation
        it.await_moves(2)
        it.check(longest_gap_s=it.faults[-1] - it.faults[0] + T_S)


@contextmanager
def replica(it: World, folder: Path) -> Iterator[tuple[RedisServer, Proxy]]:
    """A replica of the world's server that has caught up, and the link to it."""
    other = folder / "replica"
    other.mkdir()
    shutil.copy(it.server.folder / "password", other)
    password = (other / "password").read_text()
    with Proxy(it.server.port) as way:
        settings = (f"replicaof 127.0.0.1 {way.port}", f"masterauth {password}")
        with RedisServer(other, settings=settings) as server, redis_client(server.url) as client:
            eventually(lambda: in_step(client), "a replica in step")
            yield server, way


def assert_closed(it: World) -> None:
    """No broker acts on records that may be old, even if another job has loaded the scripts."""
    it.client.script_load(transition_script().text)
    bundle, record = next(iter(it.records().items()))
    owner = record.owner or it.node(0).name
    claim = Transition(
        id="early", bundle=bundle, event=Event.CLAIM, expect=record.epoch, broker=owner, actor=owner
    )
    with pytest.raises(Closed):
        OwnershipStore(it.client).apply(it.cluster, claim)


def in_step(client: redis.Redis) -> bool:
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    told: Any = client.info("replication")
    return bool(told.get("master_link_status") == "up")


def doubts(it: World) -> set[Doubt]:
    """The levels of doubt that the job has reported."""
    intents = [
        msgspec.json.decode(entry.value or b"", type=Intent)
        for entry in it.topics.all(keys.CONTROL)
    ]
    return {intent.level for intent in intents if intent.kind is Asked.DOUBT}
