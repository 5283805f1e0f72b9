"""Scenarios: what they say is what happens, and the figures say what was done."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from simulation.scenarios import (
    InvalidScenario,
    Scenario,
    change_scenario,
    library,
    load,
    run,
    strategy,
)
from simulation.scenarios.outcomes.figures import returns
from simulation.scenarios.outcomes.outcome import ScenarioCommand
from simulation.scenarios.reports.view import Reports
from simulation.scenarios.running import Run
from simulation.scenarios.what_if import on_hardware, remove_domain, with_brokers
from simulation.scenarios.world.events import Events
from simulation.scenarios.world.population import populate
from simulation.scenarios.world.reshaping import divide, merge
from simulation.scenarios.world.state import World
from trimtab.settings import Settings

SMALL = Scenario(brokers=6, bundles=60, namespaces=3, cycles=20)


def small(**values: object) -> Scenario:
    """A small scenario; ``step__share`` is ``step.share``."""
    return change_scenario(
        SMALL, {name.replace("__", "."): value for name, value in values.items()}
    )


def acting() -> Settings:
    """AvgShedder, at once: gaps of 5 points, half of which move."""
    return strategy("avg").changed(
        {
            "avg.low_threshold": 5.0,
            "avg.low_hits": 1,
            "avg.high_hits": 1,
            "unload.max_share": 0.5,
            "unload.min_rate": 0.0,
            "unload.min_throughput": 0.0,
        }
    )


@pytest.mark.parametrize("name", library())
def test_every_scenario_of_the_library_runs_for_a_while(name: str) -> None:
    scenario = load(name, cycles=15, warm_up=2)
    assert scenario.about
    assert run(scenario, strategy("threshold")).moves.shape == (15,)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidScenario) as told:
        load("skewed", **{"noize": 1, "brokers": "many", "hardware": "1:x", "step.share": 2.0})
    assert told.value.problems == [
        "noize: no such setting (did you mean noise?)",
        "brokers: must be a whole number, not 'many'",
        "hardware: must be capacities above 0 such as 1:4, not '1:x'",
        "step.share: must be from 0 to 1 (fraction), not 2.0",
    ]


def test_a_scenario_that_cannot_be_names_what_contradicts_what() -> None:
    with pytest.raises(InvalidScenario) as told:
        small(start__brokers=9, delay__low=9.0, crash__domains=2)
    assert told.value.problems == [
        "start.brokers: must be at least 2 and at most brokers",
        "delay.low: must be at most delay.high",
        "crash.domains: must be fewer than domains",
    ]


def test_a_scenario_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("brokers = 7\nnoise = 1\n[start]\nspread = 0.25\n")
    scenario = load(str(file), seed=4)
    assert (scenario.brokers, scenario.noise, scenario.start.spread) == (7, 1.0, 0.25)
    assert scenario.seed == 4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scale-in", "did you mean scale-out?"),
        ("no-such.toml", "No such file"),
    ],
)
def test_a_scenario_that_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises((InvalidScenario, OSError), match=said.replace("?", r"\?")):
        load(name)


@pytest.mark.parametrize("values", [{}, {"hardware": "1:4"}, {"sizes": "bimodal"}])
def test_the_load_at_the_start_is_what_was_asked_for(values: dict[str, object]) -> None:
    made = populate(small(bundles=600, start__spread=0.5, **values))
    levels = np.bincount(made.owner, made.load, 6) / made.capacity
    assert made.load.sum() / made.capacity.sum() == pytest.approx(0.45)
    assert levels.max() - levels.min() == pytest.approx(0.5, abs=0.03)


def test_an_even_start_is_even_and_few_carry_what_all_will() -> None:
    even, few = populate(small(bundles=600)), populate(small(bundles=600, start__brokers=4))
    assert np.ptp(np.bincount(even.owner, even.load, 6)) < 0.005
    carried = np.bincount(few.owner, few.load, 6)
    assert carried.tolist() == pytest.approx([0.675] * 4 + [0.0] * 2, abs=0.01)


def test_members_of_a_group_start_apart_but_for_the_violations() -> None:
    made = populate(small(affinity__groups=3, affinity__members=4, affinity__violations=2))
    apart = [len(set(made.owner[group * 4 : group * 4 + 4].tolist())) for group in range(3)]
    assert apart == [3, 3, 4]


def test_the_same_scenario_gives_the_same_outcome_and_another_seed_another() -> None:
    scenario = small(noise=0.3, start__spread=0.4)
    first, again = run(scenario, acting()), run(scenario, acting())
    assert first.commands == again.commands
    assert first.figures == again.figures
    assert first.commands
    assert run(small(noise=0.3, start__spread=0.4, seed=2), acting()).commands != first.commands


def test_moves_change_who_carries_the_load_and_not_how_much_there_is() -> None:
    outcome = run(small(start__spread=0.5, split=True), acting())
    carried = outcome.levels[~np.isnan(outcome.levels).any(axis=1)].sum(axis=1)
    assert outcome.figures.moves > 0
    assert carried.tolist() == pytest.approx([0.45 * 6] * 20)
    assert outcome.mean.tolist() == pytest.approx([0.45] * 20)


def test_every_move_is_counted_once() -> None:
    outcome = run(small(start__spread=0.5), acting())
    figures = outcome.figures
    assert figures.moves == len(outcome.commands) == outcome.moves.sum()
    world = World(outcome.scenario)
    owner = world.owner.copy()
    for command in outcome.commands:
        assert owner[command.bundle] == command.source
        owner[command.bundle] = command.destination
    levels = np.bincount(owner, world.load, 6)
    assert figures.final_range == pytest.approx(np.ptp(levels))
    assert figures.final_range == outcome.range[-1]
    assert figures.load_moved == pytest.approx(sum(c.load for c in outcome.commands) / 2.7)
    assert figures.last_move == outcome.commands[-1].cycle


def test_a_warm_up_moves_nothing_and_says_nothing() -> None:
    run_ = Run(small(start__spread=0.5, warm_up=5), acting())
    before = run_.world.owner
    plans = [run_.step(cycle) for cycle in range(-5, 0)]
    assert any(plan.moves for plan in plans)
    assert run_.world.owner is before
    assert run_.state.number == 5
    assert not run_.state.recent
    assert run(small(start__spread=0.5, warm_up=5), acting()).moves.shape == (20,)


def test_in_a_warm_up_that_is_not_observed_no_strategy_is_asked() -> None:
    run_ = Run(small(start__spread=0.5, warm_up=5, observed=False), acting())
    plan = run_.step(-5)
    assert plan.skipped == "disabled"
    assert not plan.moves


def test_noise_is_in_the_reports_and_not_in_the_load() -> None:
    outcome = run(small(noise=0.5), strategy("transfer"))
    assert outcome.figures.moves == 0
    assert np.unique(outcome.range).size == 1


def test_a_step_makes_some_bundles_busier_for_good() -> None:
    outcome = run(small(step__share=0.1, step__factor=3.0, step__cycle=10), strategy("transfer"))
    assert outcome.mean[9] == pytest.approx(0.45)
    assert outcome.mean[10] == outcome.mean[19] > 0.46


def test_a_wave_out_of_phase_leaves_the_mean_and_one_in_phase_does_not() -> None:
    day = {"wave__amplitude": 0.5, "wave__period": 1200.0, "cycles": 20}
    together = run(small(wave__in_phase=True, **day), strategy("transfer"))
    assert together.mean.max() == pytest.approx(0.45 * 1.5)
    assert together.mean.min() == pytest.approx(0.45 * 0.5)
    apart = run(small(namespaces=60, **day), strategy("transfer"))
    assert np.ptp(apart.mean) < 0.3


def test_a_hot_topic_stays_whole_however_often_its_bundle_is_divided() -> None:
    scenario = small(hot__topic=1.2, hot__cycle=2, split=True, limit=0.85)
    outcome = run(scenario, strategy("threshold"))
    assert outcome.figures.splits > 0
    assert outcome.highest[-1] >= 1.2
    assert outcome.figures.overloaded_minutes >= 18


def test_halves_share_the_load_and_stand_where_the_whole_stood() -> None:
    world = World(small())
    name, base, owner = world.names[7], float(world.base[7]), int(world.owner[7])
    lower, upper = divide(world, 7)
    rows = [world.row[lower], world.row[upper]]
    assert rows == [7, 60]
    assert world.base[rows].tolist() == pytest.approx([base / 2] * 2)
    assert world.owner[rows].tolist() == [owner] * 2
    assert world.origin[rows].tolist() == [7, 7]
    assert lower.split("_")[0] == name.split("_")[0]
    assert upper.split("_")[1] == name.split("_")[1]
    assert world.sizes[name.rsplit("/", 1)[0]] == 21
    assert name not in world.row


def test_a_bundle_of_one_topic_is_not_divided() -> None:
    world = World(small(topics=1))
    assert divide(world, 3) == ()
    assert len(world.names) == 60


def together(lower: int, **values: object) -> World:
    """A world in which a bundle and its upper neighbour are on broker 0."""
    world = World(small(**values))
    world.give({lower: 0, lower + 1: 0}, 0)
    return world


def test_what_neighbours_carry_is_in_the_one_they_became() -> None:
    world = together(7)
    lower, upper = world.names[7], world.names[8]
    base, levels = float(world.base[7] + world.base[8]), world.levels
    merge(world, 7, 8)
    one = f"{lower.split('_')[0]}_{upper.split('_')[1]}"
    assert (world.names[7], world.row[one], world.topics[7]) == (one, 7, 20)
    assert not {lower, upper} & set(world.row)
    assert world.base[7] == pytest.approx(base)
    assert world.levels == pytest.approx(levels)
    assert world.sizes[one.rsplit("/", 1)[0]] == 19


def test_a_merged_bundle_is_no_longer_reported() -> None:
    world = together(7, delay__high=15.0, noise=0.2)
    reports = Reports(world)
    before = reports.view(60_000)
    merge(world, 7, 8)
    view = reports.view(120_000)
    assert len(before.bundles.names) == 60
    assert sorted(view.bundles.names) == sorted(world.row)
    assert view.sizes["sim/ns-0"] == 19
    at = [*view.bundles.names].index(world.names[7])
    assert view.bundles.counts[0, at] == 20
    world.stop(0, 1)
    assert 7 in world.orphans()
    assert 8 not in world.orphans()


def test_what_was_merged_can_be_divided_again() -> None:
    world = together(7)
    names = [*world.names]
    merge(world, 7, 8)
    divide(world, 7)
    assert sorted(world.row) == sorted(names)
    assert world.row[names[8]] == 60
    assert world.parts([7]) == [7, 60]
    assert world.parts([8]) == [7]


@pytest.mark.parametrize("what", ["hot.bundle", "hot.topic"])
def test_what_becomes_hot_is_what_the_bundle_was_merged_into(what: str) -> None:
    scenario = change_scenario(SMALL, {what: 0.6})
    world, events = World(scenario), Events(scenario)
    events.begin(world, 0, 0)
    hot = int(np.argmax(world.base - populate(scenario).load))
    world = together(hot - 1, **{what: 0.6})
    merge(world, hot - 1, hot)
    before = float(world.base[hot - 1])
    events.begin(world, 0, 0)
    expected = 0.6 if what == "hot.bundle" else before + 0.6
    assert world.base[hot - 1] == pytest.approx(expected)
    assert world.base[hot] == 0


def test_a_crash_leaves_no_bundle_without_a_broker() -> None:
    scenario = small(brokers=12, crash__brokers=2, crash__cycle=5)
    run_ = Run(scenario, strategy("threshold"))
    for cycle in range(5):
        run_.step(cycle)
    owner = run_.world.owner
    repairs = run_.step(5).repairs
    lost = np.flatnonzero(~run_.world.up)
    assert lost.size == 2
    assert len(repairs) == np.count_nonzero(np.isin(owner, lost)) > 0
    assert run_.world.up[run_.world.owner].all()
    outcome = run(scenario, strategy("threshold"))
    assert outcome.figures.evacuated == len(repairs)
    assert np.isnan(outcome.levels[6]).sum() == 2


def test_when_half_of_the_brokers_vanish_nothing_is_believed() -> None:
    run_ = Run(small(crash__brokers=3, crash__cycle=5), strategy("threshold"))
    for cycle in range(5):
        run_.step(cycle)
    assert run_.step(5).skipped == "doubt"
    assert run_.world.orphans()


def test_a_rolling_restart_empties_every_broker_before_it_is_stopped() -> None:
    scenario = small(restart__every=3, restart__down=1, restart__cycle=2)
    run_ = Run(scenario, strategy("transfer"))
    stopped = 0
    for cycle in range(scenario.cycles):
        run_.step(cycle)
        assert run_.world.up[run_.world.owner].all()
        stopped += int(np.count_nonzero(~run_.world.up))
    assert stopped == 6


def test_brokers_that_join_later_come_one_by_one() -> None:
    outcome = run(small(start__brokers=4, start__joining=3, start__every=5), strategy("transfer"))
    there = np.count_nonzero(~np.isnan(outcome.levels), axis=1)
    assert there.tolist() == [4] * 3 + [5] * 5 + [6] * 12


def test_a_move_that_takes_longer_than_a_cycle_is_intended_meanwhile() -> None:
    run_ = Run(small(start__spread=0.5, delay__flight_low=90.0, delay__flight_high=90.0), acting())
    moved = [run_.world.row[move.bundle] for move in run_.step(0).moves]
    assert moved
    assert run_.world.intended is not run_.world.owner
    assert sorted(run_.world.flights) == sorted(moved)
    run_.step(1)
    assert set(moved) <= set(run_.world.flights)
    run_.step(2)
    assert not set(moved) & set(run_.world.flights)


def move(cycle: int, source: int, destination: int, *, drained: bool = False) -> ScenarioCommand:
    return ScenarioCommand(cycle, 0, source, destination, 0.1, drained)


@pytest.mark.parametrize(
    ("commands", "counted"),
    [
        pytest.param([move(0, 1, 2), move(5, 2, 1)], (1, 1), id="straight back"),
        pytest.param([move(0, 1, 2), move(40, 2, 1)], (0, 1), id="back after the cool-down"),
        pytest.param([move(0, 1, 2), move(1500, 2, 1)], (0, 0), id="back the next day"),
        pytest.param([move(0, 1, 2), move(5, 2, 3), move(9, 3, 1)], (0, 1), id="by a detour"),
        pytest.param([move(0, 1, 2, drained=True), move(5, 2, 1)], (1, 1), id="home again"),
        pytest.param([move(0, 1, 2), move(5, 2, 1, drained=True)], (0, 0), id="driven back"),
        pytest.param([move(0, 1, 2), move(5, 2, 3)], (0, 0), id="on and on"),
    ],
)
def test_returns(commands: list[ScenarioCommand], counted: tuple[int, int]) -> None:
    assert returns(commands, 60.0, 1800.0) == counted


def test_the_guard_counts_moves_that_lift_a_broker_above_the_first_peak() -> None:
    run_ = Run(small(), strategy("transfer"))
    run_.step(0)
    recorder, world = run_.recorder, run_.world
    load = float(world.load[0])
    recorder.issued(
        1, [ScenarioCommand(1, 0, int(world.owner[0]), (int(world.owner[0]) + 1) % 6, load, False)]
    )
    assert recorder.outcome("none").figures.peak_violations == 1


def test_the_reaction_is_counted_from_the_event() -> None:
    scenario = small(bundles=300, hot__bundle=0.6, hot__cycle=7)
    figures = run(scenario, acting()).figures
    assert figures.reaction == 0
    assert figures.floor == pytest.approx(0.6 - (2.7 * 299 / 300) / 5, abs=0.02)


def test_more_brokers_carry_the_same_load() -> None:
    more = with_brokers(SMALL, 3)
    assert more.brokers == 9
    assert more.mean * 9 == pytest.approx(0.45 * 6)
    ours, theirs = populate(SMALL), populate(more)
    np.testing.assert_allclose(ours.load, theirs.load)
    with pytest.raises(InvalidScenario):
        with_brokers(SMALL, -5)


def test_other_hardware_carries_the_same_load() -> None:
    other = on_hardware(SMALL, "1:4")
    assert populate(other).load.sum() == pytest.approx(2.7)
    assert other.mean == pytest.approx(0.45 / 2.5)


def test_a_failure_domain_is_lost_from_a_cycle_on() -> None:
    scenario = remove_domain(small(brokers=12, domains=6), 4)
    outcome = run(scenario, strategy("threshold"))
    there = np.count_nonzero(~np.isnan(outcome.levels), axis=1)
    assert there.tolist() == [12] * 4 + [10] * 16
    assert not math.isnan(outcome.range[-1])
    with pytest.raises(InvalidScenario, match="fewer than domains"):
        remove_domain(SMALL)
