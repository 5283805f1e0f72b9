"""How much of a plan is for brokers that plans of about the last day were for.

repeated = the usage that it brings to brokers or takes from them, up to what earlier plans brought
           there or took, as a part of all that it brings and takes

A load that swings, or noise that lasts, needs plans for the same brokers again and again. Where now
one bundle steps and now another, each plan is for other brokers, and the earlier ones were right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

HALF_LIFE_MS: Final = 12 * 3_600_000
"""Time after which a plan counts half. Shorter: a daily swing is chased; longer: a fleet that was
balanced yesterday stays skewed today."""
_TINY: Final = 1e-9
"""Usage too small to divide by."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """What recent plans did to brokers."""

    moved: dict[str, float] = field(default_factory=dict)
    """Broker to the usage that they brought there and took from there, both above 0."""
    at_ms: int = 0
    """When that was last faded."""


def note_shifts(past: Shifts, shifted: Mapping[str, float], now_ms: int) -> tuple[Shifts, float]:
    """The shifts after a plan that adds ``shifted`` to brokers' usage, and the part of it that is
    repeated."""
    kept = 0.5 ** (max(now_ms - past.at_ms, 0) / HALF_LIFE_MS)
    before = {name: kept * usage for name, usage in past.moved.items()}
    sizes = {name: abs(usage) for name, usage in shifted.items()}
    repeated = sum(min(size, before.get(name, 0.0)) for name, size in sizes.items())
    after = {name: before.get(name, 0.0) + size for name, size in sizes.items()}
    return Shifts(before | after, now_ms), repeated / max(sum(sizes.values()), _TINY)
