"""Every start needs moves, and the same bundles dealt out need none."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import starts


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "ROUNDS", 2)
    monkeypatch.setattr(starts, "BUNDLES", 60)


@pytest.mark.parametrize("name", starts.STARTS)
def test_a_start_is_planned_from_and_rests_when_it_is_dealt_out(name: str) -> None:
    planned, steady = starts.figures(name, 60)
    assert (planned.name, steady.name) == (f"starts.{name}_60", f"starts.{name}_60_steady")
    assert planned.raw.keys() == {"plan CPU s", "argsort CPU s"}
    assert " 0 moves" not in planned.says
    assert " 0 moves" in steady.says


@pytest.mark.parametrize("name", starts.STARTS)
def test_usage_is_what_a_broker_can_have(name: str) -> None:
    owner, load = starts.STARTS[name](60, np.random.default_rng(1))
    brokers = starts.view_of(owner, load, 60).brokers
    assert brokers.resources.min() >= 0.0
    assert brokers.resources[0].max() <= 95.0 + 1e-9
    empty = {"two_thirds": 20, "empty_rack": 6}.get(name, 0)
    assert np.count_nonzero(brokers.resources[0] == 0.0) == empty


def test_the_bars_hold_for_ten_thousand_brokers() -> None:
    assert max(starts.SIZES) == starts.BARRED
