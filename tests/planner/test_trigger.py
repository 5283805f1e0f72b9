"""What is accepted: the target, and more after recent plans."""

from __future__ import annotations

import pytest

from trimtab.planner.trigger import find_tolerated_range
from trimtab.settings import Settings


@pytest.mark.parametrize(
    ("target", "unrest", "accepted"),
    [
        (0.02, 1.0, 0.02),
        (0.02, 100.0, 0.06),
        (0.05, 1.0, 0.05),
        (0.05, 3.0, 0.125),
        (0.05, 100.0, 0.15),
        (0.15, 1.0, 0.15),
        (0.15, 3.0, 0.225),
        (0.15, 100.0, 0.25),
    ],
)
def test_recent_plans_widen_a_wide_target_by_no_more_than_a_balanced_one(
    target: float, unrest: float, accepted: float
) -> None:
    settings = Settings.parse({"planner.target": target})
    assert find_tolerated_range(settings, unrest) == pytest.approx(accepted)
