"""A large value goes through Kafka in pieces, and comes back whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from trimtab.wire.pieces import HEADER, PIECE, Headers, Joiner, pieces

LARGE = bytes(range(256)) * (PIECE // 100)
Told = tuple[bytes, Headers]


def told(value: bytes, generation: int = 1) -> list[Told]:
    return list(pieces(value, generation))


def joined(records: Iterable[Told], key: bytes = b"q/1") -> list[bytes]:
    joiner = Joiner()
    taken = (joiner.take(key, value, headers, at) for at, (value, headers) in enumerate(records))
    return [whole.value for whole in taken if whole is not None]


def test_a_value_that_fits_is_one_record_without_a_header() -> None:
    """As every version reads it."""
    assert told(b"x" * PIECE) == [(b"x" * PIECE, ())]
    assert joined(told(b"small") + told(b"")) == [b"small", b""]


def test_a_large_value_comes_back_whole_and_no_record_is_larger_than_a_piece() -> None:
    records = told(LARGE)
    assert len(records) == 3
    assert max(len(value) for value, _ in records) == PIECE
    assert joined([*records, (b"next", ())]) == [LARGE, b"next"]


def test_it_stands_where_its_first_record_does() -> None:
    joiner, records = Joiner(), told(LARGE)
    found = [
        joiner.take(b"", value, headers, 7 + at) for at, (value, headers) in enumerate(records)
    ]
    assert found[:2] == [None, None]
    assert found[2] == (LARGE, 7)


def test_one_that_was_cut_short_and_begun_again_is_told_once() -> None:
    records = told(LARGE)
    assert joined([*records[:2], *records]) == [LARGE]
    assert joined([*records[:2], *told(LARGE, 2)]) == [LARGE]
    assert joined([*records[:2], *told(LARGE[:-1])]) == [LARGE[:-1]]
    assert joined(records[:2]) == []


def test_one_whose_beginning_is_gone_is_left_out() -> None:
    records = told(LARGE)
    assert joined([*records[1:], *told(b"next")]) == [b"next"]
    assert joined([records[0], records[2], *told(b"next")]) == [b"next"]
    assert joined([records[0], records[1], records[1], *told(b"next")]) == [b"next"]


@pytest.mark.parametrize(
    "header", [b"", b"x/0/1", b"1/0", b"1/-1/2", b"1/0/2/3", b"1/0/" + b"9" * 5000, b"\xff/0/1"]
)
def test_a_header_that_no_job_wrote_completes_nothing(header: bytes) -> None:
    assert Joiner().take(b"k", b"v", [(HEADER, header)], 0) is None


def test_pieces_of_two_jobs_are_not_mixed() -> None:
    """The older one does not know yet that it was fenced."""
    older, newer = told(LARGE), told(bytes(reversed(LARGE)), 2)
    mixed = [older[0], newer[0], older[1], newer[1], newer[2], older[2]]
    assert joined(mixed) == [bytes(reversed(LARGE)), LARGE]
