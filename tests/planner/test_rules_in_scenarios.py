"""Groups that are crowded, a hot bundle and a hot topic, in whole scenarios."""

from __future__ import annotations

from collections import Counter

import pytest

from simulation.scenarios import Figures, Scenario, load, run, strategy
from simulation.scenarios.running import Run
from tests.support.examples import later
from trimtab.reasons import Rule
from trimtab.settings import Settings

PLANNED = strategy("trimtab").changed({"split.trigger": "planned"})
UNLIMITED = PLANNED.changed({"split.max_rate": 1e12, "split.max_throughput": 1e15})
"""No limit of Pulsar's divides anything."""


def watched(scenario: Scenario, settings: Settings) -> tuple[Figures, Counter[Rule]]:
    """What comes of it, and the rules that were reported."""
    it, told = Run(scenario, settings), Counter[Rule]()
    for cycle in range(-scenario.warm_up, scenario.cycles):
        plan = it.step(cycle)
        told.update(refusal.rule for refusal in plan.refusals if cycle >= 0)
    return it.recorder.outcome("planned").figures, told


@pytest.mark.parametrize("changes", [{}, {"noise": 0.5}, {"affinity.members": 20, "domains": 3}])
@pytest.mark.parametrize("seed", [1, *later(2)])
def test_crowded_groups_are_parted_in_the_first_cycle(
    seed: int, changes: dict[str, object]
) -> None:
    figures = run(load("anti-affinity", seed=seed, cycles=30, **changes), PLANNED).figures
    assert (figures.violations_before, figures.violations, figures.violations_new) == (6, 0, 0)
    assert (figures.violations_ended, figures.refusals) == (0, 0)
    assert figures.peak_violations == 0 or changes


@pytest.mark.parametrize("settings", [PLANNED, UNLIMITED], ids=["limits", "no limits"])
@pytest.mark.parametrize("seed", [1, *later(2)])
def test_a_hot_bundle_is_divided_and_its_parts_spread(seed: int, settings: Settings) -> None:
    """Whole it forces 13 points; to keep the others off its broker would take 50 moves."""
    figures, _ = watched(load("hot-bundle", seed=seed, cycles=60, split=True), settings)
    assert figures.final_range < 0.06 < figures.floor
    assert figures.moves <= 30
    assert figures.peak_violations == 0


@pytest.mark.parametrize("seed", [1, *later(2)])
def test_cold_neighbours_make_room_where_a_namespace_has_all_the_bundles_it_may(seed: int) -> None:
    scenario = load("full-namespaces", seed=seed, cycles=60)
    figures = run(scenario, PLANNED).figures
    full = run(scenario, PLANNED.changed({"merge.enabled": False})).figures
    assert (full.splits, full.merges) == (0, 0)
    assert full.final_range > full.floor
    assert figures.merges >= figures.splits > 0
    assert figures.final_range < 0.06
    assert figures.moves < full.moves / 2


@pytest.mark.parametrize("seed", [1, *later(2)])
def test_a_hot_topic_is_reported_once_a_split_of_its_bundle_did_not_help(seed: int) -> None:
    figures, told = watched(load("hot-topic", seed=seed, cycles=40), UNLIMITED)
    assert figures.splits == 2
    assert 20 <= told[Rule.UNDIVIDABLE] <= 25
    assert figures.final_range < 1.1 * figures.floor


def test_nothing_is_divided_for_noise() -> None:
    figures, told = watched(load("noise", noise=0.5, split=True, cycles=600), UNLIMITED)
    assert (figures.splits, told) == (0, Counter())
