"""What the columns of the estimates say of each bundle, and of the fleet."""

from __future__ import annotations

from dataclasses import replace
from math import exp, expm1
from typing import Any

import msgspec
import numpy as np
import pytest

from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.estimating.noise_memory import MOST, remaining
from trimtab.load_model.estimating.rows import replace_rows
from trimtab.wire.columns import pack, unpack

SEEN = 24.0
"""Residuals of each bundle, of which 20 can be outliers."""
SIGMA = 0.1


def estimates(count: int = 2, **columns: list[float]) -> Estimates:
    """So many alike bundles with noise ``SIGMA`` and no outliers, but for the ``columns``."""
    alike: dict[str, Any] = {
        "keys": np.arange(count, dtype=np.uint64),
        "at_ms": np.zeros(count, np.int64),
        "age": np.full(count, np.inf),
    }
    figures = {"level": 1 / count, "last": 1 / count, "weight": 10.0, "squares": 10.0}
    noise = {"variance": SIGMA**2, "moved": SIGMA**2, "seen": SEEN}
    for name, value in (figures | noise).items():
        alike[name] = np.full(count, value)
    for name in Estimates.__dataclass_fields__:
        alike.setdefault(name, np.zeros(count))
    return Estimates(**alike | {name: np.array(column) for name, column in columns.items()})


def test_for_ten_samples_a_leap_was_no_chance() -> None:
    known = estimates(3, age=[1.0, 9.0, 10.0])
    assert known.chance.tolist() == [0.0, 0.0, known.spread[2]]
    assert (known.spread > 0).all()


def test_where_outliers_are_common_a_leap_may_be_chance() -> None:
    known = estimates(age=[1.0, np.inf], outliers=[0.1, 0.1])
    assert known.chance.tolist() == known.spread.tolist()


def test_for_four_samples_others_may_be_about_to_leap_too() -> None:
    assert estimates(4, age=[1.0, 4.0, 5.0, np.inf]).leaping == 2


@pytest.mark.parametrize(
    ("columns", "outliers"),
    [
        pytest.param({}, 8.0, id="two in 20 samples of each of four bundles"),
        pytest.param({"age": [7.0, 8.0, np.inf, np.inf]}, 7.0, id="what has just leapt had one"),
        pytest.param({"up": [2.3, 2.1, 0.0, 0.0]}, 7.0, id="what may be leaping now had one"),
        pytest.param({"down": [2.1, 2.3, 2.3, 0.0]}, 6.0, id="up or down"),
        pytest.param({"age": [1.0] * 4, "outliers": [0.04] * 4}, 0.0, id="never fewer than none"),
    ],
)
def test_an_outlier_that_began_a_leap_is_none(
    columns: dict[str, list[float]], outliers: float
) -> None:
    found = estimates(4, **{"outliers": [0.1] * 4} | columns).outlying
    assert (found.bundles, found.samples) == (4, 80.0)
    assert found.outliers == pytest.approx(outliers)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("share", [0.5, 1e-6])
def test_a_sample_is_far_from_its_level_by_more_than_four_deviations(
    sign: int, share: float
) -> None:
    level, last = [share] * 2, [share * exp(sign * by * SIGMA) for by in (3.9, 4.1)]
    assert estimates(level=level, last=last).far.tolist() == [False, True]
    assert estimates(level=level, last=last, seen=[4.0] * 2).far.tolist() == [False, False]


def test_what_carries_nothing_any_more_is_far_and_what_never_did_is_not() -> None:
    assert estimates(level=[0.5, 0.0], last=[0.0, 0.0]).far.tolist() == [True, False]


def test_a_load_is_its_level_with_the_part_of_its_lag_that_counts_and_never_all_and_more() -> None:
    known = estimates(3, level=[0.4, 0.4, 0.9], behind=[0.5, 0.5, 0.5], growing=[0.0, 0.5, 1.0])
    assert known.current.tolist() == pytest.approx([0.4, 0.5, 1.0])


@pytest.mark.parametrize(("seen", "known"), [([0.0, 0.0], False), ([0.0, 1.0], True)])
def test_a_fleet_is_known_once_a_bundle_was_reported_twice(seen: list[float], known: bool) -> None:
    assert estimates(seen=seen).known == known


@pytest.mark.parametrize(
    ("variance", "moved", "memory", "counts"),
    [
        pytest.param(0.0, 0.0, 0.99, 0.25, id="nothing is known: a deviation of one half"),
        pytest.param(0.01, 0.01, 0.99, 0.25, id="lasting noise may be as large"),
        pytest.param(0.01, 0.01, 0.5, 0.02, id="half of it lasts from sample to sample"),
        pytest.param(0.01, 0.005, 0.0, 0.01, id="no less than what was seen"),
        pytest.param(0.5, 0.5, 0.99, 0.5, id="nor if that is more than while nothing is known"),
    ],
)
def test_how_sure_a_level_is(variance: float, moved: float, memory: float, counts: float) -> None:
    columns = {"variance": variance, "moved": moved, "memory": memory}
    known = estimates(2, **{name: [value] * 2 for name, value in columns.items()})
    left = remaining(known.memory, known.weight, known.squares)
    assert (known.spread / 0.25).tolist() == pytest.approx((expm1(counts) * left).tolist(), 0.01)


def test_a_level_with_its_lag_is_less_sure_than_without() -> None:
    known = estimates(behind=[0.5, 0.5], growing=[0.0, 1.0])
    assert known.spread[1] == pytest.approx(2.5 * known.spread[0])


def test_estimates_are_equal_where_each_column_is() -> None:
    assert estimates() == estimates()
    assert estimates() != estimates(age=[1.0, np.inf])
    assert estimates() != "estimates"


def test_a_column_with_other_values_leaves_the_one_before_as_it_was() -> None:
    column, other = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0, 9.0])
    assert replace_rows(column, np.array([0, 2]), other).tolist() == [7.0, 2.0, 9.0]
    assert replace_rows(column, np.array([1])).tolist() == [1.0, 0.0, 3.0]
    assert replace_rows(column, np.array([], np.int64), other).tolist() == [1.0, 2.0, 3.0]
    assert column.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("left_out", "begun"),
    [
        pytest.param(["first"], {"first": 0.0}, id="first samples"),
        pytest.param(
            ["last", "moved", "memory", "outliers"],
            {"last": 0.3, "moved": 0.04, "memory": MOST, "outliers": 0.0, "seen": 1.0},
            id="memories of noise: as after one residual",
        ),
    ],
)
def test_a_state_from_before_a_column_was_kept_begins_it(
    left_out: list[str], begun: dict[str, float]
) -> None:
    known = estimates(3, level=[0.3] * 3, variance=[0.04] * 3, first=[0.2] * 3)
    stored = msgspec.msgpack.decode(pack(known))
    for name in left_out:
        del stored[name]
    again = unpack(msgspec.msgpack.encode(stored), Estimates)
    assert again == replace(known, **{name: np.full(3, value) for name, value in begun.items()})
