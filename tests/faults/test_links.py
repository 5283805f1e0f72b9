"""The link between brokers and Redis: cut, cut in one direction, slow."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.table import Row
from tests.faults.world import LONG_S, world
from tests.support.waiting import eventually
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.ownership import Change


@pytest.mark.fault(15, "agent and Redis parted")
@pytest.mark.parametrize(
    "ways",
    [
        pytest.param("both"),
        pytest.param("questions", marks=pytest.mark.slow),
        pytest.param("answers", marks=pytest.mark.slow),
    ],
)
def test_a_broker_that_is_cut_off(row: Row, tmp_path: Path, seed: int, ways: str) -> None:
    with world(row, tmp_path, seed=seed, behind=frozenset({0})) as it:
        it.await_moves(2)
        alone = it.node(0)
        it.fault()
        it.link.hold(up=ways != "answers", down=ways != "questions")
        eventually(lambda: not it.owned_by(alone.name), "others have its bundles")
        row.note("taken over s", round(it.diary.now() - it.faults[0], 1))
        taken = len(it.job.changes())
        it.let_pass(LONG_S - (it.diary.now() - it.faults[0]))
        # No bundle goes to it while it is gone.
        assert not [c for c in it.job.changes()[taken:] if gains(c, alone.name)]
        # Requests that it sent meanwhile arrive now, too late.
        it.link.release()
        it.fault()
        eventually(lambda: alone.agent.seeded and it.owned_by(alone.name), "it is used again")
        row.note("back in use s", round(it.diary.now() - it.faults[1], 1))
        row.note("ways", ways)
        it.check()


@pytest.mark.fault(17, "slow and lossy links")
@pytest.mark.parametrize("jitter", [0.03, 0.1])
@pytest.mark.slow
def test_slow_links(row: Row, tmp_path: Path, seed: int, jitter: float) -> None:
    # A lease as in production: of 3 s, some hand-overs at 250 ms a round trip take more than one.
    lease_s = 10.0
    with world(row, tmp_path, seed=seed, behind=None, job_behind=True, lease_s=lease_s) as it:
        it.fault()
        it.link.slow(0.02, jitter, rate=1e6)
        it.await_moves(8, 120.0)
        it.link.slow(0)
        it.rest()
        taken = hand_over_ms(it.job.changes())
        row.note("delay ms", f"20+{jitter * 1000:.0f}")
        row.note("hand-over p50 ms", taken[len(taken) // 2])
        row.note("hand-over p99 ms", taken[int(len(taken) * 0.99)])
        it.check(longest_gap_s=lease_s + 5.0)


@pytest.mark.fault(35, "batches slower than reports")
@pytest.mark.slow
def test_a_batch_that_takes_longer_than_reports_take_to_come(
    row: Row, tmp_path: Path, seed: int
) -> None:
    """All reports that came meanwhile are one batch: no decision waits behind older reports."""
    with world(row, tmp_path, seed=seed, job_behind=True) as it:
        it.await_moves(2)
        first = len(it.job.batches())
        it.fault()
        it.link.slow(0.25)
        it.await_moves(4, 120.0)
        slow = it.job.batches()[first:]
        it.link.slow(0)
        reports = [
            b.offsets[keys.LOAD_REPORTS]["0"] for b in slow if keys.LOAD_REPORTS in b.offsets
        ]
        assert all(ended == begun for (_, ended), (begun, _) in pairwise(reports))
        most = max(ended - begun for begun, ended in reports)
        assert most > 1
        row.note("reports a batch, at most", most)
        row.note("longest batch s", max(b.at - a.at for a, b in pairwise(slow)) / 1000)
        it.check()


def gains(change: Change, broker: str) -> bool:
    given = (change.event in {Event.ASSIGN, Event.CLAIM}, change.record.owner)
    return given == (True, broker) or change.record.destination == broker


def hand_over_ms(changes: list[Change]) -> list[int]:
    """From the job's command until the new owner serves, ascending."""
    begun: dict[str, int] = {}
    taken = []
    for change in changes:
        if change.event is Event.TRANSFER:
            begun[change.bundle] = change.record.since
        elif change.event is Event.SERVE and change.bundle in begun:
            taken.append(change.record.since - begun.pop(change.bundle))
    return sorted(taken)
