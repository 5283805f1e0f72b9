"""The packing of columns: exact, deterministic, and nothing that could run."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from trimtab.arrays import Bools, Floats, Ints
from trimtab.wire.columns import inflate, pack, pack_small, unpack


@dataclass(frozen=True, slots=True, eq=False)
class Some:
    name: str
    vector: Floats
    matrix: Floats
    counts: Ints
    flags: Bools
    pairs: dict[str, int]


def some(columns: int) -> Some:
    return Some(
        name="é",
        vector=np.arange(columns, dtype=np.float64),
        matrix=np.arange(4.0 * columns).reshape(4, columns),
        counts=np.arange(columns),
        flags=np.arange(columns) % 2 == 0,
        pairs={"b": 1, "a": 2},
    )


@pytest.mark.parametrize("columns", [0, 1, 7])
def test_columns_come_back_as_they_went(columns: int) -> None:
    before = some(columns)
    after = unpack(pack(before), Some)
    assert after.name == before.name
    for name in ("vector", "matrix", "counts", "flags"):
        gone, back = getattr(before, name), getattr(after, name)
        assert back.dtype == gone.dtype
        assert back.shape == gone.shape
        assert back.tolist() == gone.tolist()


def test_equal_values_are_equal_bytes_whatever_order_they_were_built_in() -> None:
    other = some(3)
    swapped = Some(
        other.name, other.vector, other.matrix, other.counts, other.flags, {"a": 2, "b": 1}
    )
    assert pack(swapped) == pack(other)


def test_decoded_columns_cannot_be_written() -> None:
    assert not unpack(pack(some(2)), Some).matrix.flags.writeable


@pytest.mark.parametrize("data", [b"", b"\x80", pack({"name": 1}), pack([1, 2])])
def test_bytes_of_something_else_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        unpack(data, Some)


def test_what_is_packed_small_is_the_same_and_needs_less() -> None:
    """What was packed before is read too."""
    before = some(700)
    small = pack_small(before)
    assert len(small) < len(pack(before)) / 2
    assert inflate(small) == pack(before) == inflate(pack(before))
    assert inflate(zlib.compress(pack(before))) == pack(before)
    np.testing.assert_array_equal(unpack(small, Some).matrix, before.matrix)
    assert inflate(b"") == b""
