"""Bundle names packed into numbers, and spelt out again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import HashRange
from trimtab.names import PackedNames, kept, ranges_of, rows_of
from trimtab.view import namespaces_of

ends = st.integers(0, 0xFFFFFFFF)
ranges = st.tuples(ends, ends).filter(lambda ends: ends[0] < ends[1]).map(lambda e: HashRange(*e))
bundles = st.builds("{}/{}".format, st.sampled_from(["t/a", "t/a/b", "é/ü"]), ranges)
named = st.lists(bundles, unique=True, max_size=12)


def packed(names: list[str]) -> PackedNames:
    namespace, namespaces = namespaces_of(names)
    return PackedNames(namespaces, namespace, ranges_of("\n".join(names)))


def test_the_ends_of_a_range_are_read_from_its_name() -> None:
    found = ranges_of("t/n/0x00000000_0x40000000\nt/n/0x9abcdef0_0xffffffff")
    assert found.tolist() == [[0, 0x9ABCDEF0], [0x40000000, 0xFFFFFFFF]]


def test_no_names_have_no_ranges() -> None:
    assert ranges_of("").shape == (2, 0)


@given(named)
def test_names_survive_packing(names: list[str]) -> None:
    assert list(packed(names)) == names
    assert [packed(names)[row] for row in range(len(names))] == names
    assert packed(names)[1:7:2] == tuple(names[1:7:2])
    assert len(packed(names)) == len(names)


@given(named, st.lists(bundles | st.just("no bundle"), max_size=6), st.data())
def test_rows_are_found_as_in_a_list(
    names: list[str], others: list[str], data: st.DataObject
) -> None:
    wanted = {*others, *data.draw(st.lists(st.sampled_from(names or others or ["x"])))}
    assert rows_of(packed(names), wanted) == rows_of(tuple(names), wanted)


def test_a_row_is_found_by_both_ends_of_its_range() -> None:
    """Two that overlap, as reports of a hand-over may."""
    names = ["t/n/0x00000000_0x40000000", "t/n/0x00000000_0x80000000", "t/n/0x40000000_0x80000000"]
    for row, name in enumerate(names):
        assert rows_of(packed(names), {name}) == [row]
    assert rows_of(packed(names), {"t/n/0x40000000_0xc0000000"}) == []


@given(named, st.data())
def test_a_part_is_kept_as_of_a_list(names: list[str], data: st.DataObject) -> None:
    size = len(names)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    assert list(kept(packed(names), mask)) == list(kept(tuple(names), mask))
