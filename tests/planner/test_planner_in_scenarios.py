"""The planner in whole scenarios: how many moves, how close, how soon, and never for nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simulation.scenarios import ScenarioOutcome, load, run, strategy
from tests.support.examples import later

TARGET = 0.05
FEW = 6
"""Cycles in which a plan without noise is made and done."""


def outcome(name: str, seed: int, noise: float = 0.0, cycles: int = FEW) -> ScenarioOutcome:
    """What comes of a scenario of the library; where there is noise it has been watched for an
    hour."""
    return _outcome(name, seed, noise, cycles)


@cache
def _outcome(name: str, seed: int, noise: float, cycles: int) -> ScenarioOutcome:
    warm_up: dict[str, object] = {"warm_up": 60} if noise else {}
    scenario = load(name, seed=seed, noise=noise, cycles=cycles, **warm_up)
    return run(scenario, strategy("trimtab"))


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_ten_more_brokers_are_filled_with_a_hundred_moves(seed: int) -> None:
    figures = outcome("scale-out", seed).figures
    assert figures.moves <= 100
    assert figures.final_range <= TARGET


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_skewed_fleet_is_balanced_with_48_moves(seed: int) -> None:
    figures = outcome("skewed", seed).figures
    assert figures.moves <= 48
    assert figures.final_range <= TARGET


def test_two_moves_more_are_made_where_a_giant_would_have_to_go() -> None:
    """41 would do, with a quarter more load."""
    figures = outcome("skewed", 154).figures
    assert figures.moves <= 43
    assert figures.load_ratio is not None
    assert figures.load_ratio < 1.1


@pytest.mark.parametrize(("seed", "fewest"), [(1, 39), (2, 37), (3, 35), (4, 36)])
def test_bundles_larger_than_the_target_are_moved_with_few_small_ones(
    seed: int, fewest: int
) -> None:
    """``fewest`` is the optimum of an integer program, for 5 points."""
    figures = outcome("bimodal", seed).figures
    assert fewest <= figures.moves <= 1.2 * fewest
    assert figures.final_range <= TARGET


@pytest.mark.parametrize(
    ("name", "seed", "noise"),
    [
        ("scale-out", 2, 0.5),
        ("skewed", 2, 0.2),
        *later(("scale-out", 2, 0.2), ("skewed", 2, 0.5), ("skewed", 1, 0.2), ("skewed", 1, 0.5)),
    ],
)
def test_noise_costs_few_moves_more(name: str, seed: int, noise: float) -> None:
    noisy, calm = outcome(name, seed, noise), outcome(name, seed)
    assert 0 < noisy.figures.moves <= 1.15 * calm.figures.moves
    assert noisy.figures.final_range <= 2 * TARGET


@pytest.mark.parametrize("cycles", [500, *later(1500)])
def test_nothing_moves_for_noise(cycles: int) -> None:
    """Eight hours, or a day, of a fleet within three points."""
    assert outcome("noise", 1, 0.5, cycles).figures.moves == 0


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("seed", [1, 2, *later(3, 4)])
def test_a_step_is_answered_within_two_cycles(seed: int, noise: float) -> None:
    reaction = outcome("step", seed, noise, 16).figures.reaction
    assert reaction is not None
    assert reaction <= 2


@pytest.mark.parametrize("seed", [1, *later(2, 5, 9, 17, 18, 24, 32)])
def test_a_step_in_strong_noise_is_answered_within_four_cycles(seed: int) -> None:
    reaction = outcome("step", seed, 0.5, 20).figures.reaction
    assert reaction is not None
    assert reaction <= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_s_wave_is_not_chased(seed: int) -> None:
    """A day in rounds of five minutes."""
    scenario = load("wave", seed=seed, seconds=300.0, cycles=288)
    assert 0 < run(scenario, strategy("trimtab")).figures.moves <= 25


@pytest.mark.parametrize("seed", [1, 2, 13])
def test_mixed_hardware_is_brought_to_one_utilisation(seed: int) -> None:
    figures = outcome("mixed-hardware", seed).figures
    assert figures.moves > 0
    assert figures.final_range <= max(TARGET, 1.1 * figures.floor)


@pytest.mark.parametrize(
    "past",
    [
        *(("scale-out", seed, 0.0, FEW) for seed in (2, 3, 4)),
        *(("skewed", seed, 0.0, FEW) for seed in (1, 2, 3, 4)),
        ("scale-out", 2, 0.5, FEW),
        ("skewed", 2, 0.2, FEW),
        *(("mixed-hardware", seed, 0.0, FEW) for seed in (1, 2)),
    ],
    ids=lambda past: "-".join(map(str, past)),
)
def test_no_broker_is_lifted_above_the_peak_and_nothing_moves_back(
    past: tuple[str, int, float, int],
) -> None:
    came = outcome(*past)
    assert came.figures.peak_violations == 0
    assert came.figures.straight_back == 0
    assert (np.diff(came.highest) <= 1e-9).all()


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("seed", [1, 2, *later(3, 4)])
def test_nothing_moves_straight_back_after_a_step(seed: int, noise: float) -> None:
    assert outcome("step", seed, noise, 16).figures.straight_back == 0


def test_a_fleet_that_was_only_watched_is_acted_on_at_once() -> None:
    """What was shown for an hour and not done is no reason to wait."""
    assert outcome("skewed", 2, 0.2).moves[:2].sum() > 0
