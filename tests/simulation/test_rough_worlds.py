"""Rough worlds do what they say, and are judged by their truth."""

from __future__ import annotations

import numpy as np
import pytest

from simulation.scenarios import Scenario, change_scenario, load, run, strategy
from simulation.scenarios.outcomes.judging import Judged, count_false_plans
from simulation.scenarios.reading import InvalidScenario
from simulation.scenarios.reports.post import Post
from simulation.scenarios.reports.view import Reports
from simulation.scenarios.running import name_of
from simulation.scenarios.scenario import Need
from simulation.scenarios.world.events import Events
from simulation.scenarios.world.needs import needs_of
from simulation.scenarios.world.state import World
from simulation.scenarios.world.wandering import Wandering
from trimtab.arrays import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    RATE_IN,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Floats,
    Ints,
)
from trimtab.load import usage
from trimtab.settings import Settings

SMALL = Scenario(brokers=6, bundles=120, namespaces=4, cycles=20)
MINUTE_MS = 60_000
EPOCH_MS = 1_800_000_000_000


def small(**values: object) -> Scenario:
    """A small scenario; ``burst__a_day`` is ``burst.a_day``."""
    return change_scenario(
        SMALL, {name.replace("__", "."): value for name, value in values.items()}
    )


def autocorrelation(series: Floats) -> float:
    """Of (cycles, m) deviates, from one cycle to the next."""
    return float((series[1:] * series[:-1]).mean() / (series**2).mean())


def logarithms(of: Scenario, cycles: int, sigma: float) -> Floats:
    """(cycles, m) deviates of what is reported, from the truth."""
    world = World(of)
    reports = Reports(world)
    shown = []
    for cycle in range(cycles):
        reports.view(cycle * MINUTE_MS)
        shown.append(np.log(reports.statistics.drawn[0] / world.load) + sigma**2 / 2)
    return np.array(shown) / sigma


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.95])
def test_noise_remembers_as_much_of_its_past_as_was_asked_for(memory: float) -> None:
    deviates = logarithms(small(noise=0.3, noise_memory=memory), 400, 0.3)
    assert autocorrelation(deviates) == pytest.approx(memory, abs=0.02)
    assert deviates.std() == pytest.approx(1.0, abs=0.06)


def test_noise_is_reported_and_is_not_the_truth() -> None:
    world = World(scenario := small(noise=0.5, noise_memory=0.9))
    before = world.levels.copy()
    reports = Reports(world)
    Events(scenario).begin(world, 0, 0)
    shown = usage(reports.view(0).brokers.resources, Settings().weights)
    assert np.abs(shown - before).max() > 0.01
    np.testing.assert_array_equal(world.levels, before)


def test_wandering_is_the_truth_and_is_reported_as_it_is() -> None:
    scenario = small(wander__sigma=0.3, wander__memory=0.9)
    world, events = World(scenario), Events(scenario)
    reports, loads = Reports(world), []
    for cycle in range(400):
        events.begin(world, cycle, 0)
        reports.view(cycle * MINUTE_MS)
        np.testing.assert_array_equal(reports.statistics.drawn[0], world.load)
        loads.append(np.log(world.load / world.base) + 0.3**2 / 2)
    deviates = np.array(loads) / 0.3
    assert autocorrelation(deviates) == pytest.approx(0.9, abs=0.02)
    assert deviates.std() == pytest.approx(1.0, abs=0.1)


def test_the_two_resources_are_on_different_bundles() -> None:
    world = World(small(need__most="processor:network", need__others=0.1))
    assert np.bincount(world.kind).tolist() == [60, 60]
    # Apart: all bundles of a kind on a broker of their own.
    world.owner = world.intended = world.kind.copy()
    resources = Reports(world).view(0).brokers.resources / 100
    carried = np.bincount(world.kind, world.load)
    np.testing.assert_allclose(resources[CPU, :2], carried * [1.0, 0.1], rtol=1e-6)
    for link in (BANDWIDTH_IN, BANDWIDTH_OUT):
        np.testing.assert_allclose(resources[link, :2], carried * [0.1, 1.0], rtol=1e-6)


def test_bytes_and_messages_are_those_of_the_resources() -> None:
    needs = needs_of(("processor", "network", "memory"), Need(others=0.2))
    kilobits = needs.traffic[[THROUGHPUT_IN, THROUGHPUT_OUT]] * 8 / 1000
    np.testing.assert_allclose(kilobits, needs.used[[BANDWIDTH_IN, BANDWIDTH_OUT]])
    sizes = needs.traffic[THROUGHPUT_IN] / needs.traffic[RATE_IN]
    assert sizes.tolist() == pytest.approx([sizes[2] / 5, sizes[2] * 5, sizes[2]])


@pytest.mark.parametrize("most", ["", "processor:network", "processor:network:memory"])
def test_without_noise_the_usage_that_counts_is_what_pulsar_counts(most: str) -> None:
    world = World(small(need__most=most, hardware="1:4"))
    weights = Settings().changed({"weights.direct_memory": 1.0}).weights
    seen = usage(Reports(world).view(0).brokers.resources, weights)
    np.testing.assert_allclose(world.levels, seen, rtol=1e-6)


def test_bursts_come_as_often_and_last_as_long_as_asked_for_and_pass() -> None:
    wandering = Wandering(small(bundles=1200, burst__a_day=12.0, burst__lasting=900.0))
    days = np.array([wandering.step() for _ in range(1440)])
    assert set(np.unique(days).tolist()) == {1.0, 3.0}
    bursting = days == 3.0
    begun = int((bursting[1:] & ~bursting[:-1]).sum())
    quiet = 1.0 - bursting.mean()
    assert begun / 1200 == pytest.approx(12.0 * quiet, rel=0.05)
    # A cycle is the shortest: a burst of 15 minutes is seen for 15.5 on average.
    assert bursting.sum() / begun == pytest.approx(15.5, rel=0.05)


def test_opposed_tenants_peak_when_the_others_are_quietest() -> None:
    scenario = small(wave__amplitude=0.5, wave__opposed=True, wave__steep=3.0)
    world, events = World(scenario), Events(scenario)
    even = world.namespace % 2 == 0
    found = []
    for cycle in range(1440):
        events.begin(world, cycle, 0)
        found.append([(world.load / world.base)[rows].mean() for rows in (even, ~even)])
    swings: Floats = np.array(found)
    np.testing.assert_allclose(swings.sum(axis=1), 2.0)
    assert swings.min(axis=0).tolist() == pytest.approx([0.5, 0.5])
    at_an_end = np.isclose(np.abs(swings[:, 0] - 1), 0.5).mean()
    assert at_an_end == pytest.approx(1 - 2 * np.arcsin(1 / 3) / np.pi, abs=0.01)


def posted(scenario: Scenario, cycles: int) -> tuple[Ints, Ints]:
    """(cycles, n) when the newest reports were made, and when they arrived."""
    post, made, arrived = Post(scenario, scenario.brokers), [], []
    for cycle in range(cycles):
        post.collect(cycle * MINUTE_MS)
        made.append(post.made_ms.copy())
        arrived.append(post.arrived_ms.copy())
    return np.array(made), np.array(arrived)


def test_a_fifth_of_the_reports_is_lost() -> None:
    made, arrived = posted(small(reports__lost=0.2), 2000)
    new = (np.diff(made, axis=0) > 0).mean()
    assert new == pytest.approx(0.8, abs=0.02)
    np.testing.assert_array_equal(made, arrived)


def test_reports_are_late_and_an_older_one_does_not_come_after_a_newer_one() -> None:
    made, arrived = posted(small(reports__late=180.0), 500)
    assert (np.diff(made, axis=0) >= 0).all()
    late = (arrived - made)[10:]
    assert 0 <= late.min() < 10_000
    assert 100_000 < late.max() <= 180_000


def test_reports_come_at_an_interval_of_their_own() -> None:
    made, _ = posted(small(reports__every=300.0), 100)
    steps = np.diff(made, axis=0)
    assert set(np.unique(np.rint(steps / 1000)).tolist()) == {0.0, 300.0}


def test_a_silent_broker_is_out_of_view_with_its_bundles() -> None:
    world = World(small(reports__lost=0.95, reports__late=60.0))
    reports = Reports(world)
    absent = 0
    for cycle in range(60):
        view = reports.view(EPOCH_MS + cycle * MINUTE_MS)
        silent = {world.brokers[row] for row in np.flatnonzero(reports.silent())}
        assert set(view.brokers.names) == set(world.brokers) - silent
        owners = {view.brokers.names[row] for row in np.unique(view.bundles.owner)}
        assert owners <= set(view.brokers.names)
        assert len(view.bundles.names) == sum(
            world.brokers[owner] not in silent for owner in world.owner.tolist()
        )
        absent += len(silent)
    assert absent > 10


def one_move(scenario: Scenario, hottest_to_coldest: bool) -> Judged:
    """A plan that moves a middling bundle."""
    world = World(scenario)
    ends = int(world.levels.argmax()), int(world.levels.argmin())
    source, destination = ends if hottest_to_coldest else ends[::-1]
    rows = np.flatnonzero(world.owner == source)
    after = world.owner.copy()
    after[rows[np.argsort(world.load[rows])[len(rows) // 2]]] = destination
    return Judged(0, world.owner, after)


def test_a_plan_that_narrows_the_range_is_not_false_and_its_opposite_is() -> None:
    scenario = small(start__spread=0.5)
    assert count_false_plans(scenario, [one_move(scenario, True)]) == 0
    assert count_false_plans(scenario, [one_move(scenario, False)]) == 1
    assert count_false_plans(scenario, []) == 0


def test_a_plan_for_a_burst_that_passes_is_false() -> None:
    scenario = small(burst__a_day=4.0, burst__factor=8.0, cycles=200, bundles=600)
    world, events = World(scenario), Events(scenario)
    for cycle in range(200):
        events.begin(world, cycle, 0)
    bursting = world.load > world.base
    hot = int(world.levels.argmax())
    rows = np.flatnonzero(bursting & (world.owner == hot))
    after = world.owner.copy()
    after[rows[world.load[rows].argmin()]] = int(world.levels.argmin())
    assert np.ptp(world.usage_of(after)) < np.ptp(world.levels)
    assert count_false_plans(scenario, [Judged(199, world.owner, after)]) == 1


def test_plans_are_counted_and_not_judged_where_brokers_come_and_go() -> None:
    figures = run(small(restart__every=3, restart__cycle=3), strategy("trimtab")).figures
    assert figures.plans > 0
    assert figures.false_plans is None


def test_doing_nothing_moves_only_what_must_move() -> None:
    nothing = strategy("none")
    assert name_of(nothing) == "none"
    assert run(small(start__spread=0.8), nothing).figures.moves == 0
    restarted = run(small(restart__every=3, restart__cycle=3), nothing).figures
    assert restarted.moves == 0
    assert restarted.evacuated > 0


def test_what_cannot_go_together_is_named() -> None:
    with pytest.raises(InvalidScenario) as told:
        load("skewed", **{"need.most": "processor:disk"})
    assert told.value.problems == [
        "need.most: must be of processor, network, memory, such as processor:network, "
        "not 'processor:disk'"
    ]
    with pytest.raises(InvalidScenario) as told:
        small(reports__lost=0.1, delay__high=5.0, wave__opposed=True, wave__in_phase=True)
    assert told.value.problems == [
        "reports: go without delay.high, which is about the age of reports too",
        "wave.opposed: goes without wave.in_phase",
    ]


def test_one_broker_after_the_other_is_busy_by_itself() -> None:
    scenario = small(backup__share=0.2, backup__every=3, backup__lasting=2, backup__cycle=1)
    world, events = World(scenario), Events(scenario)
    calm, busy = world.levels.copy(), []
    for cycle in range(7):
        events.begin(world, cycle, cycle * MINUTE_MS)
        busy.append(np.flatnonzero(world.busy).tolist())
        np.testing.assert_allclose(world.levels, calm + world.busy)
        shown = usage(Reports(world).view(0).brokers.resources, Settings().weights)
        np.testing.assert_allclose(shown, world.levels, atol=1e-6)
    assert [len(each) for each in busy] == [0, 1, 1, 0, 1, 1, 0]
    assert busy[1] == busy[2] != busy[4] == busy[5]


def test_bursts_may_begin_after_a_calm_warm_up() -> None:
    wandering = Wandering(small(burst__a_day=500.0, burst__cycle=0, warm_up=30))
    bursting = [(wandering.step() > 1).any() for _ in range(60)]
    assert not any(bursting[:30])
    assert all(bursting[35:])
