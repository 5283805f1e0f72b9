"""Failovers by real Sentinels, under a fleet that never rests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.table import Row
from tests.faults.world import T_S, World, world
from tests.support.sentinels import PATIENCE_S, is_master
from tests.support.waiting import eventually


@pytest.mark.fault(9, "Redis: failover by Sentinels")
@pytest.mark.slow
def test_job_and_brokers_follow_the_sentinels(row: Row, tmp_path: Path, seed: int) -> None:
    with world(row, tmp_path, seed=seed, behind=None, job_behind=True, failover=True) as it:
        it.await_moves(2)
        it.fault()
        it.server.kill()
        failed_over(it, row)
        check(it)


@pytest.mark.fault(9, "Redis: failover, the old master lives on")
@pytest.mark.slow
def test_brokers_of_a_master_that_lives_on_serve_nothing_beside_its_successor(
    row: Row, tmp_path: Path, seed: int
) -> None:
    # The first broker knows the master's own address only, and still reaches it there.
    followers = frozenset({1, 2, 3})
    with world(row, tmp_path, seed=seed, behind=followers, job_behind=True, failover=True) as it:
        it.await_moves(2)
        it.fault()
        it.link.hold()
        failed_over(it, row)
        assert is_master(it.server)
        it.link.release()
        eventually(lambda: not is_master(it.server), "the old master obeys", PATIENCE_S)
        check(it)


def check(it: World) -> None:
    """Check that nothing is served while there is no master, nor while lost records are
    restored."""
    it.check(longest_gap_s=it.faults[1] - it.faults[0] + T_S)


def failed_over(it: World, row: Row) -> None:
    """Wait until every bundle is served again, by brokers that the new master knows."""
    assert it.watched is not None
    it.watched.await_failover()
    row.note("failover s", round(it.diary.now() - it.faults[0], 1))
    row.note("open s", round(it.await_open(), 1))
    row.note("served s", round(it.await_served(), 1))
    it.fault()
