"""The rate of a job is that of its batches, whenever the seconds looked at begin and end."""

from __future__ import annotations

import pytest

from benchmarks.scale import find_rate
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord


def batches(*taken: tuple[float, int]) -> list[BatchRecord]:
    """Batches that began then (s) and took so many reports of each of two partitions."""
    made, at = list[BatchRecord](), 0
    for began_s, count in taken:
        spans = {str(partition): (at, at + count) for partition in range(2)} if count else {}
        offsets = {keys.LOAD_REPORTS: spans, keys.OWNERSHIP: {"0": (0, 7)}}
        at += count
        made.append(
            BatchRecord(
                query="q",
                batch=len(made),
                generation=1,
                at=round(1000 * began_s),
                offsets=offsets,
                rounds=(),
            )
        )
    return made


def test_what_a_batch_takes_came_since_the_start_of_the_one_before() -> None:
    even = batches(*((10.0 * number, 900 if number == 0 else 50) for number in range(20)))
    assert find_rate(even) == pytest.approx(10.0)


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("last", range(13, 19))
def test_it_does_not_matter_how_long_before_a_round_was(first: int, last: int) -> None:
    """One of six batches holds a round, takes fewer reports, and the next one takes more."""
    usual = {0: 5, 1: 95}
    seen = batches(*((10.0 * number, usual.get(number % 6, 50)) for number in range(20)))
    assert find_rate(seen[first : last + 1]) == pytest.approx(10.0)


def test_a_job_that_falls_behind_is_seen() -> None:
    slow = batches(*((12.5 * number, 50) for number in range(20)))
    assert find_rate(slow) == pytest.approx(8.0)


def test_batches_without_reports_take_time() -> None:
    seen = batches(*((10.0 * number, 50 * (number % 2)) for number in range(20)))
    assert find_rate(seen) == pytest.approx(5.0)
