"""The rate of a job is that of its batches, wherever the seconds looked at begin and end."""

from __future__ import annotations

import pytest

from benchmarks.scale import find_rate
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord


def batch(at_s: float, *spans: tuple[int, int]) -> BatchRecord:
    """A batch that began then and took these offsets of as many partitions."""
    taken = {str(number): span for number, span in enumerate(spans)}
    offsets = {keys.LOAD_REPORTS: taken, keys.OWNERSHIP: {"0": (0, 7)}} if spans else {}
    return BatchRecord(
        query="q", batch=1, generation=1, at=round(1000 * at_s), offsets=offsets, rounds=()
    )


def test_what_a_batch_takes_came_since_the_start_of_the_one_before() -> None:
    even = [batch(10.0, (0, 900)), batch(13.0, (900, 930)), batch(16.0, (930, 960))]
    assert find_rate(even) == pytest.approx(10.0)
    behind = [batch(10.0, (0, 900)), batch(18.0, (900, 930)), batch(21.0, (930, 1040))]
    assert find_rate(behind) == pytest.approx(140 / 11)


def test_all_partitions_count_and_batches_without_reports_take_time() -> None:
    seen = [batch(0.0, (0, 5)), batch(4.0, (5, 9), (0, 4)), batch(8.0)]
    assert find_rate(seen) == pytest.approx(1.0)
