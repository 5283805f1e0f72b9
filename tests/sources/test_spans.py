"""Which records a batch reads: about as many as it may, from every partition, each by one task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.spans import Span, advance, share_out, spans_between

OFFSETS = st.dictionaries(st.integers(0, 7), st.integers(0, 5000), max_size=6)


@pytest.mark.parametrize(
    ("starts", "ends", "most", "expected"),
    [
        pytest.param({0: 5}, {0: 9, 1: 3}, 100, {0: 9, 1: 3}, id="all there is, and a new one"),
        pytest.param({0: 0, 1: 0}, {0: 300, 1: 100}, 40, {0: 30, 1: 10}, id="to each its share"),
        pytest.param({0: 0, 1: 6}, {0: 999, 1: 7}, 10, {0: 9, 1: 7}, id="one at least"),
        pytest.param({0: 7}, {0: 7}, 10, {0: 7}, id="nothing new"),
        pytest.param({0: 9, 1: 0}, {0: 4, 1: 99}, 10, {0: 4, 1: 10}, id="one that was cut"),
    ],
)
def test_a_batch_takes_from_each_partition_its_share_of_what_is_left(
    starts: dict[int, int], ends: dict[int, int], most: int, expected: dict[int, int]
) -> None:
    assert advance(starts, ends, most) == expected


@given(OFFSETS, OFFSETS, st.integers(1, 3000))
def test_a_batch_stays_within_what_there_is_and_takes_something_of_each_partition(
    starts: dict[int, int], more: dict[int, int], most: int
) -> None:
    ends = {number: starts.get(number, 0) + count for number, count in more.items()}
    taken = {n: end - starts.get(n, 0) for n, end in advance(starts, ends, most).items()}
    assert taken.keys() == more.keys()
    assert all(0 <= taken[number] <= count for number, count in more.items())
    assert all(taken[number] for number, count in more.items() if count)
    assert sum(taken.values()) <= most + len(more)


def test_records_are_shared_out_evenly_and_a_partition_may_be_cut() -> None:
    spans = [Span(0, 10, 40), Span(2, 0, 70)]
    assert share_out(spans, 2) == [[Span(0, 10, 40), Span(2, 0, 20)], [Span(2, 20, 70)]]


def test_a_few_records_are_read_by_one_task() -> None:
    spans = [Span(0, 0, 20), Span(1, 7, 18)]
    assert share_out(spans, 4) == [spans]


def test_without_records_there_is_no_task() -> None:
    assert share_out(spans_between({0: 4, 1: 9}, {0: 4, 1: 2}), 2) == []


@given(OFFSETS, OFFSETS, st.integers(1, 5))
def test_each_record_is_read_once(starts: dict[int, int], ends: dict[int, int], tasks: int) -> None:
    shares = share_out(spans_between(starts, ends), tasks)
    read = [
        (number, offset)
        for share in shares
        for number, start, end in share
        for offset in range(start, end)
    ]
    expected = [(n, at) for n, end in sorted(ends.items()) for at in range(starts.get(n, 0), end)]
    assert read == expected
    assert len(shares) <= tasks
    sizes = [sum(end - start for _, start, end in share) for share in shares]
    # All but the last have the same number.
    assert len(set(sizes[:-1])) <= 1
