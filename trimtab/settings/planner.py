"""Settings of trimtab's own strategy."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import setting
from trimtab.settings.units import DAY
from trimtab.settings.words import AIMS


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """trimtab's own strategy: the fewest moves that bring all brokers within a range."""

    target: float = setting(
        AIMS["balanced"],
        "fraction",
        (0.001, 1.0),
        "The accepted range: highest minus lowest usage of the brokers; in words planner.aim. "
        "Low: many moves for little; high: brokers stay unequal.",
    )
    half_life: float = setting(
        1800.0,
        "s",
        (1.0, DAY),
        "Of the average of a bundle's share of the load; level shifts are found separately. Short: "
        "follows noise, and larger ranges are needed to act; long: slow drifts are seen late.",
    )
    cost_half_life: float = setting(
        3600.0,
        "s",
        (1.0, 30 * DAY),
        "Of the learned cost of traffic on each kind of broker. Short: predictions "
        "follow noise; long: an upgraded broker is judged by what it was.",
    )
    false_moves: float = setting(
        1.0,
        "plans a month",
        (1e-6, 1e6),
        "How often chance may cause a plan. Low: real ranges have to be larger to be acted on; "
        "high: moves for nothing.",
    )
    effort: int = setting(
        400_000,
        "steps",
        (1_000, 1_000_000_000),
        "How much is tried for a plan; a count and not a time, so that a replay decides the same. "
        "A single trial takes at most a tenth of it, or two steps a broker. Low: more moves than "
        "needed, and large plans in several rounds; high: a plan takes longer.",
    )
