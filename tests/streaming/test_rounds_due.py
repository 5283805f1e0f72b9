"""The batch that holds a round takes fewer reports, as long as the job keeps up with them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streaming.query.reports.rounds_due import RoundsAwaited, RoundsDue
from tests.support.demo_rounds import record
from trimtab.reasons import Rule

MINUTE_S = 60.0
HELD_MS = 1_800_000_000_000
DUE_MS = HELD_MS + 60_000
MOST = 4_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "due"


def hold(
    file: Path, brokers: int, *more: int, skipped: str = "", interval_s: float | None = None
) -> RoundsAwaited:
    """What the source knows after a round of a cluster of so many brokers, and one of each of
    ``more`` clusters."""
    due = RoundsDue(file, MINUTE_S)
    for number, count in enumerate((brokers, *more)):
        held = msgspec.structs.replace(
            record(number),
            cluster=f"c{number}",
            at=HELD_MS,
            summary={"brokers": float(count)},
            skipped=skipped,
            overrides={} if interval_s is None else {"round.interval": interval_s},
        )
        due.note(held)
    return RoundsAwaited(str(file))


def test_a_round_takes_the_room_of_a_report_of_each_broker(file: Path) -> None:
    awaited = hold(file, 1_000)
    assert awaited.leave_room(MOST, 0, DUE_MS) == 3_000


def test_rounds_that_are_due_together_take_more(file: Path) -> None:
    awaited = hold(file, 1_000, 700, 300)
    assert awaited.leave_room(MOST, 0, DUE_MS) == 2_000


def test_some_reports_are_taken_beside_the_largest_round(file: Path) -> None:
    awaited = hold(file, 10_000)
    assert awaited.leave_room(MOST, 0, DUE_MS) == 500
    assert hold(file, 10_000).leave_room(1, 0, DUE_MS) == 1


@pytest.mark.parametrize(("early_ms", "most"), [(501, MOST), (500, 3_000)])
def test_a_round_may_be_held_a_little_after_the_batch_is_planned(
    file: Path, early_ms: int, most: int
) -> None:
    awaited = hold(file, 1_000)
    assert awaited.leave_room(MOST, 0, DUE_MS - early_ms) == most
    assert awaited.leave_room(MOST, 0, DUE_MS) == 3_000


def test_a_round_takes_room_once(file: Path) -> None:
    awaited = hold(file, 1_000)
    assert [awaited.leave_room(MOST, 0, DUE_MS + late) for late in (0, 3_000)] == [3_000, MOST]
    # And so does the next one.
    hold(file, 1_000, interval_s=2 * MINUTE_S)
    assert awaited.leave_room(MOST, 0, DUE_MS + 60_000) == 3_000


@pytest.mark.parametrize(("waiting", "most"), [(2 * MOST, 3_000), (2 * MOST + 1, MOST)])
def test_a_job_that_fell_behind_takes_all_that_it_may(file: Path, waiting: int, most: int) -> None:
    assert hold(file, 1_000).leave_room(MOST, waiting, DUE_MS) == most


def test_a_cluster_may_have_an_interval_of_its_own(file: Path) -> None:
    awaited = hold(file, 1_000, interval_s=120.0)
    assert awaited.leave_room(MOST, 0, DUE_MS) == MOST
    assert awaited.leave_room(MOST, 0, DUE_MS + 60_000) == 3_000


def test_rounds_in_each_batch_take_no_room(file: Path) -> None:
    assert hold(file, 1_000, interval_s=0.0).leave_room(MOST, 0, DUE_MS) == MOST


def test_a_round_between_two_regular_ones_changes_nothing(file: Path) -> None:
    awaited = hold(file, 1_000, skipped=Rule.REPAIR_ONLY)
    assert awaited.leave_room(MOST, 0, DUE_MS) == MOST


@pytest.mark.parametrize("content", [None, b"", b"no JSON", b'{"c": 3}'])
def test_without_a_file_that_can_be_read_batches_are_as_ever(
    file: Path, content: bytes | None
) -> None:
    if content is not None:
        file.write_bytes(content)
    assert RoundsAwaited(str(file)).leave_room(MOST, 0, DUE_MS) == MOST
    assert RoundsAwaited("").leave_room(MOST, 0, DUE_MS) == MOST


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    hold(tmp_path / "absent" / "due", 1_000)
