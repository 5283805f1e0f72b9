"""What is accepted: the target, and more after recent plans."""

from __future__ import annotations

import pytest

from trimtab.load_model.wariness import find_slack, find_tolerated_range
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


@pytest.mark.parametrize("target", [0.02, 0.05, 0.15])
@pytest.mark.parametrize("unrest", [0.0, 2.0, 100.0])
def test_a_range_as_wide_as_after_many_plans_is_always_seen(target: float, unrest: float) -> None:
    """Two brokers may both be off by the slack."""
    settings = Settings.parse({"planner.target": target})
    hidden = find_tolerated_range(settings, unrest) + 2 * find_slack(settings, unrest)
    assert hidden == pytest.approx(find_tolerated_range(settings, 100.0))
