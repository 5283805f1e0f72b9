"""Every pairing that is measured plans something, and the memory counted is the view's."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from benchmarks import plans
from benchmarks.synthetic import columns
from trimtab.placement import PLACERS
from trimtab.settings import SHEDDING


@pytest.fixture(scope="module")
def built() -> plans.Built:
    return plans.build(columns(40, 50, 1))


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "ROUNDS", 2)
    monkeypatch.setattr(plans, "SORTED", 10)


@pytest.mark.parametrize(("shedding", "placement"), plans.PAIRINGS)
def test_a_pairing_plans_moves(built: plans.Built, shedding: str, placement: str) -> None:
    found = plans.plan_figure(built.view, shedding, placement)
    assert found.bar is not None
    assert found.raw.keys() == {"plan CPU s", "argsort CPU s"}
    assert all(len(seconds) == 2 for seconds in found.raw.values())


def test_a_plan_without_moves_is_not_measured() -> None:
    unmoved = plans.build(columns(2, 1, 1)).view
    with pytest.raises(
        RuntimeError, match="overload with round-robin planned nothing: no-proposal"
    ):
        plans.plan_figure(unmoved, "overload", "round-robin")


def test_every_strategy_is_in_a_pairing() -> None:
    shedding, placement = (set(names) for names in zip(*plans.PAIRINGS, strict=True))
    assert shedding == set(SHEDDING)
    assert placement == PLACERS.keys()


def test_the_view_is_counted_with_its_names(built: plans.Built) -> None:
    bundles = built.view.bundles
    columns_of = (getattr(bundles, field.name) for field in fields(bundles))
    held = sum(column.nbytes for column in columns_of if isinstance(column, np.ndarray))
    names = 2 * np.dtype(np.uint32).itemsize * len(bundles.names)
    assert held + names < built.allocated < 2 * (held + names)
