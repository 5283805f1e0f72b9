"""The profile of a simulated fleet, as an operator writes it into a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

TABLE: Final = "fleet"
"""The TOML table a profile is read from."""


class InvalidProfile(ValueError):
    """Raised for a profile that cannot be simulated; names every problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Profile:
    """A fleet and how unevenly it starts. Usages are fractions of a broker's CPU."""

    brokers: int = 12
    bundles: int = 480
    namespaces: int = 30
    low: float = 0.20
    """Usage of the coldest broker at the start."""
    high: float = 0.85
    """Usage of the hottest broker at the start."""
    skew: float = 1.0
    """1 spreads the others evenly in between; above 1 few are hot, below 1 few are cold."""
    base: float = 0.05
    """Usage of a broker without a bundle."""
    message_rate: float = 100.0
    """Messages/s published to a bundle on average; each is delivered ``fan_out`` times."""
    message_bytes: float = 1024.0
    fan_out: float = 1.0
    rate_sigma: float = 0.5
    """Sigma of the log-normal bundle rates; 0 makes all bundles equal."""
    cost_sigma: float = 0.1
    """Sigma of the log-normal CPU cost of a message, by bundle: load only roughly follows rate."""
    noise: float = 0.02
    """Relative sigma of every figure of a report."""
    cores: int = 8
    nic_gbps: float = 25.0
    seed: int = 1

    def __post_init__(self) -> None:
        checks = {
            "brokers must be at least 2": self.brokers >= 2,
            "bundles must be at least brokers": self.bundles >= self.brokers,
            "namespaces must be from 1 to bundles": 1 <= self.namespaces <= self.bundles,
            "0 <= base <= low <= high <= 1 must hold, with base < high": (
                0 <= self.base <= self.low <= self.high <= 1 and self.base < self.high
            ),
            "skew, message_rate, message_bytes, cores and nic_gbps must be above 0": (
                min(self.skew, self.message_rate, self.message_bytes, self.cores, self.nic_gbps) > 0
            ),
            "fan_out, rate_sigma, cost_sigma, noise and seed must not be negative": (
                min(self.fan_out, self.rate_sigma, self.cost_sigma, self.noise, self.seed) >= 0
            ),
        }
        problems = [problem for problem, holds in checks.items() if not holds]
        if problems:
            raise InvalidProfile(problems)


def read_profile(path: Path) -> Profile:
    """Read the ``[fleet]`` table of a TOML file; raises InvalidProfile, OSError."""
    try:
        table = tomllib.loads(path.read_text()).get(TABLE, {})
        unknown = sorted(set(table) - set(Profile.__dataclass_fields__))
        if unknown:
            raise InvalidProfile([f"{path}: no such setting: {name}" for name in unknown])
        return msgspec.convert(table, Profile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidProfile([f"{path}: {error}"]) from error
