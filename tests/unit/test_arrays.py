"""Columns are compared, and their median is found, as numpy does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.arrays import Floats, find_median, same_columns

FINITE = st.floats(allow_nan=False, width=32)


@dataclass(frozen=True, eq=False)
class Named:
    """Columns beside a plain value."""

    names: tuple[str, ...]
    values: Floats


class Other(Named):
    """Another kind of the same columns."""


@given(st.lists(FINITE, min_size=1, max_size=50))
def test_the_median_is_that_of_numpy(values: list[float]) -> None:
    found, expected = find_median(np.array(values)), float(np.median(values))
    assert found == expected or (np.isnan(found) and np.isnan(expected))


def test_the_median_leaves_the_values_in_their_order() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert find_median(values) == 2.0
    assert values.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Named(("a",), np.array([1.0, 2.0])), True, id="equal"),
        pytest.param(Named(("b",), np.array([1.0, 2.0])), False, id="another name"),
        pytest.param(Named(("a",), np.array([1.0, 3.0])), False, id="another value"),
        pytest.param(Named(("a",), np.array([1.0])), False, id="fewer"),
        pytest.param(Other(("a",), np.array([1.0, 2.0])), False, id="another kind"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_columns_are_the_same_if_kind_and_all_fields_are(other: object, *, same: bool) -> None:
    assert same_columns(Named(("a",), np.array([1.0, 2.0])), other) is same
