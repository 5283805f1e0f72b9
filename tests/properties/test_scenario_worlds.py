"""Whatever happens in a scenario, and whichever strategy acts: nothing is lost, nothing twice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.scenarios import Scenario, change_scenario, strategy
from simulation.scenarios.running import Run
from simulation.scenarios.world.population import populate
from tests.support.examples import examples

BASE: Mapping[str, object] = {
    "brokers": 6,
    "bundles": 48,
    "namespaces": 3,
    "cycles": 12,
    "limit": 0.6,
    "evenly": True,
    "affinity.members": 3,
}


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    values = dict(BASE)
    optional: dict[str, st.SearchStrategy[object]] = {
        "seed": st.integers(0, 5),
        "noise": st.sampled_from([0.0, 0.5]),
        "warm_up": st.integers(0, 4),
        "hardware": st.sampled_from(["1", "1:4", "1:1:2"]),
        "split": st.booleans(),
        "start.spread": st.sampled_from([0.0, 0.6]),
        "start.brokers": st.sampled_from([0, 4]),
        "delay.high": st.sampled_from([0.0, 15.0, 90.0]),
        "delay.flight_high": st.sampled_from([0.0, 100.0]),
        "step.share": st.sampled_from([0.0, 0.05]),
        "hot.topic": st.sampled_from([0.0, 1.2]),
        "wave.amplitude": st.sampled_from([0.0, 0.5]),
        "crash.brokers": st.integers(0, 2),
        "crash.returning": st.integers(0, 4),
        "restart.every": st.sampled_from([0, 2]),
        "affinity.groups": st.sampled_from([0, 2]),
    }
    for name in draw(st.sets(st.sampled_from(sorted(optional)))):
        values[name] = draw(optional[name])
    return change_scenario(Scenario(), values)


@pytest.mark.parametrize("name", ["threshold", "overload", "uniform", "avg", "transfer", "trimtab"])
@examples(12)
@given(scenario=scenarios(), most=st.sampled_from([128, 16]))
def test_every_bundle_stays_on_one_broker_and_keeps_its_load(
    name: str, scenario: Scenario, most: int
) -> None:
    run = Run(scenario, strategy(name).changed({"split.max_bundles": most, "merge.fraction": 1.0}))
    world = run.world
    before = populate(scenario)
    moves = divided = merged = 0
    for cycle in range(-scenario.warm_up, scenario.cycles):
        plan = run.step(cycle)
        if cycle >= 0:
            moves += len(plan.moves)
            divided += len(plan.splits)
            merged += len(plan.merges)
    assert before.load.size <= world.load.size <= before.load.size + divided
    assert np.count_nonzero(world.gone) == len(world.heirs) == merged
    assert not world.load[world.gone].any()
    assert world.levels @ world.capacity == pytest.approx(world.load.sum())
    if not (scenario.step.share or scenario.hot.topic):
        assert world.base.sum() == pytest.approx(before.load.sum())
        np.testing.assert_allclose(
            np.bincount(world.namespace, world.base), np.bincount(before.namespace, before.load)
        )
        if not merged:
            np.testing.assert_allclose(np.bincount(world.origin, world.base), before.load)
    here = np.flatnonzero(~world.gone).tolist()
    assert [world.row[world.names[row]] for row in here] == here
    assert len(world.row) == len(here) == sum(world.sizes.values())
    outcome = run.recorder.outcome(name)
    assert len(outcome.commands) == moves
    assert (
        outcome.figures.moves
        == outcome.moves.sum()
        == sum(not command.drained for command in outcome.commands)
    )
    assert outcome.lowest[-1] <= outcome.mean[-1] + 1e-9
    assert np.isfinite(outcome.range).all()


@examples(12)
@given(scenario=scenarios())
def test_a_scenario_is_the_same_for_every_strategy_but_for_what_it_moves(
    scenario: Scenario,
) -> None:
    runs = [Run(scenario, strategy(name)) for name in ("transfer", "uniform")]
    for cycle in range(-scenario.warm_up, scenario.cycles):
        for run in runs:
            run.step(cycle)
        one, other = (run.world for run in runs)
        np.testing.assert_array_equal(one.up, other.up)
        np.testing.assert_allclose(
            np.bincount(one.origin, one.load), np.bincount(other.origin, other.load)
        )
