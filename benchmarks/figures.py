"""What a benchmark returns: figures, the bars they must meet, and the numbers they were made of."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Limit(StrEnum):
    """Whether a figure must be at least or at most its bar."""

    AT_LEAST = ">="
    AT_MOST = "<="


class Bar(msgspec.Struct, frozen=True):
    """The limit that a figure must meet; ``where`` names the machine or condition it is for."""

    limit: Limit
    value: float
    where: str = ""

    def holds(self, value: float) -> bool:
        return value >= self.value if self.limit is Limit.AT_LEAST else value <= self.value


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured value; ``holds`` is None where there is nothing to meet."""

    name: str
    value: float
    unit: str
    says: str
    """What the value is, in a sentence."""
    bar: Bar | None = None
    holds: bool | None = None
    raw: dict[str, list[float]] = {}
    """The numbers behind it, each side under its own name and unit."""


def figure(  # noqa: PLR0913 - one value's description
    name: str,
    value: float,
    unit: str,
    says: str,
    bar: Bar | None = None,
    raw: dict[str, list[float]] | None = None,
) -> Figure:
    """Make a figure, and judge whether it meets its bar."""
    return Figure(
        name=name,
        value=rounded(value),
        unit=unit,
        says=says,
        bar=bar,
        holds=bar.holds(value) if bar else None,
        raw={
            side: [rounded(number) for number in numbers] for side, numbers in (raw or {}).items()
        },
    )


def rounded(value: float) -> float:
    """Round to four significant digits: more would be noise."""
    return float(f"{value:.4g}")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of a run; its load averages tell what else ran on it."""

    cores: int
    processor: str
    memory_gib: float
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    versions: dict[str, str]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark, run once."""

    benchmark: str
    command: str
    at: str
    """UTC, to the minute."""
    seconds: float
    machine: Machine
    figures: tuple[Figure, ...]
