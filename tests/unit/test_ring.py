"""Topics find their bundle on the ring."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import FULL_RANGE_END, HashRange
from trimtab.store.ring import bundle_at, equal_edges, position


@pytest.mark.parametrize(
    ("topic", "where"),
    [
        ("non-persistent://acme/ns/orders", 0x4E47A75C),
        ("non-persistent://acme/ns/a b", 0x643B2C92),
        ("non-persistent://acme/ns/caf\u00e9-\u6771\u4eac", 0xDE62351B),
    ],
)
def test_a_position_is_pulsars(topic: str, where: int) -> None:
    assert position(topic) == where


def test_the_last_of_equal_bundles_takes_the_rest() -> None:
    assert [f"{edge:x}" for edge in equal_edges(3)] == ["0", "55555555", "aaaaaaaa", "ffffffff"]
    assert equal_edges(1) == [0, FULL_RANGE_END]
    with pytest.raises(ValueError, match="at least one bundle, not 0"):
        equal_edges(0)


@pytest.mark.parametrize(
    ("where", "bundle"),
    [
        pytest.param(0, (0, 0x80000000), id="an edge is of the range above it"),
        pytest.param(0x7FFFFFFF, (0, 0x80000000), id="the last before an edge"),
        pytest.param(0x80000000, (0x80000000, FULL_RANGE_END), id="the edge"),
        pytest.param(
            FULL_RANGE_END, (0x80000000, FULL_RANGE_END), id="the end, where Pulsar fails"
        ),
    ],
)
def test_a_range_has_its_lower_edge(where: int, bundle: tuple[int, int]) -> None:
    assert bundle_at(equal_edges(2), where) == HashRange(*bundle)


@given(st.integers(1, 300), st.integers(0, FULL_RANGE_END))
def test_every_position_is_in_one_bundle(bundles: int, where: int) -> None:
    ranges = [HashRange(*pair) for pair in pairwise(equal_edges(bundles))]
    last = ranges[-1]
    holding = [r for r in ranges if r.low <= where < r.high or (r == last and where == r.high)]
    assert holding == [bundle_at(equal_edges(bundles), where)]
