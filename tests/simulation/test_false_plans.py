"""Noise alone makes no plan: without memory or with, of any tails, in a fleet that is not known
yet."""

from __future__ import annotations

import pytest

from simulation.false_plans import Noise, count_false_plans

FRESH = 90


@pytest.mark.parametrize("tails", [0, 3])
@pytest.mark.parametrize(("rho", "sigma"), [(0.0, 0.2), (0.5, 0.3), (0.95, 0.3), (0.98, 0.3)])
def test_a_balanced_fleet_that_has_just_started_is_left_alone(
    rho: float, sigma: float, tails: int
) -> None:
    assert count_false_plans(Noise(rho, sigma, tails), FRESH) == 0
