"""What is predicted of a shadow strategy comes true once it is active."""

from __future__ import annotations

import pytest

from simulation.load_model import LoadModel, load_model
from simulation.profile import Profile
from tests.support.examples import later
from tests.support.landing import Landing
from trimtab.wire.rounds import ShadowSide

ROUNDS = 40
ACTING: dict[str, object] = {
    "unload.min_rate": 100.0,
    "avg.low_hits": 3,
    "avg.high_hits": 2,
    "threshold.min_throughput": 0,
}
AVG = ("avg", "avg")
THRESHOLD = ("threshold", "least-long-term-rate")


def both(
    model: LoadModel, champion: tuple[str, str], challenger: tuple[str, str]
) -> tuple[ShadowSide, ShadowSide]:
    """How the two stand in the end."""
    chosen = {
        "round.shedding": champion[0],
        "round.placement": champion[1],
        "shadow.shedding": challenger[0],
        "shadow.placement": challenger[1],
    }
    landing = Landing(model, ACTING | chosen)
    for _ in range(ROUNDS):
        shadow = landing.round().shadow
    assert shadow is not None
    assert shadow.rounds == ROUNDS
    return shadow.champion, shadow.challenger


@pytest.mark.parametrize("base", [0.15, *later(0.05)])
@pytest.mark.parametrize("seed", [1, *later(2)])
def test_a_challengers_moves_and_ranges_are_those_it_has_in_charge(seed: int, base: float) -> None:
    """Also where a broker without a bundle is busy already."""
    model = load_model(Profile(seed=seed, base=base))
    avg, threshold_tried = both(model, AVG, THRESHOLD)
    threshold, avg_tried = both(model, THRESHOLD, AVG)
    for true, predicted in ((avg, avg_tried), (threshold, threshold_tried)):
        assert predicted.total_moves == pytest.approx(true.total_moves, rel=0.1)
        assert predicted.mean_range == pytest.approx(true.mean_range, abs=0.03)
        assert predicted.total_bounces == true.total_bounces
