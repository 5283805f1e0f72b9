"""A fleet like the demo's comes to rest under AvgShedder, whatever the seed."""

from __future__ import annotations

import pytest

from simulation.closed_loop import ClosedLoop, LoopCycle, Pace
from simulation.load_model import load_model
from simulation.profile import Profile
from trimtab.settings import Settings

LOW_THRESHOLD = 0.15
DEMO = Settings.parse(
    {
        "round.shedding": "avg",
        "round.placement": "avg",
        "round.interval": 5.0,
        "avg.low_hits": 3,
        "avg.high_hits": 2,
        "unload.min_rate": 500.0,
        "unload.max_share": 0.5,
    }
)


def steps(profile: Profile, rounds: int = 12, settings: Settings = DEMO) -> list[LoopCycle]:
    loop = ClosedLoop(load_model(profile), settings, Pace(report_interval=5.0))
    return list(loop.steps(rounds))


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_demo_fleet_ends_below_the_low_threshold_within_a_minute(seed: int) -> None:
    taken = steps(Profile(seed=seed))
    assert taken[0].range == pytest.approx(0.65, abs=0.02)
    assert all(step.range < LOW_THRESHOLD for step in taken[6:])
    assert not any(step.plan.moves for step in taken[6:])


@pytest.mark.parametrize("skew", [0.5, 3.0])
def test_few_hot_or_few_cold_brokers_are_balanced_too(skew: float) -> None:
    taken = steps(Profile(skew=skew), rounds=20)
    assert taken[-1].range < LOW_THRESHOLD


def test_every_move_takes_load_from_a_hotter_to_a_colder_broker() -> None:
    loop = ClosedLoop(load_model(Profile()), DEMO)
    before, moves = loop.usages(), 0
    for step in loop.steps(6):
        for move in step.plan.moves:
            assert before[move.source] > before[move.destination]
        before, moves = loop.usages(), moves + len(step.plan.moves)
    assert moves


def test_the_same_seed_gives_the_same_moves() -> None:
    first, second = (
        [step.plan.moves for step in steps(Profile(seed=3), rounds=6)] for _ in range(2)
    )
    assert first == second
    assert any(first)


def test_moves_change_who_carries_the_load_and_not_how_much_there_is() -> None:
    model = load_model(Profile(noise=0.0))
    loop = ClosedLoop(model, DEMO)
    before = sum(loop.usages().values())
    list(loop.steps(6))
    assert sum(loop.usages().values()) == pytest.approx(before)
