"""Loads that change by themselves, bundle by bundle: they wander, and they burst.

wandering = e^(sigma N - sigma²/2), where N remembers its past: N' = memory N + sqrt(1 - memory²) e
burst     = a bundle's load times a factor; bursts begin at random and last a random time
"""

from __future__ import annotations

import numpy as np

from simulation.scenarios.scenario import DAY_S, Scenario
from trimtab.arrays import Bools, Floats


class LogNormal:
    """Factors e^(sigma N - sigma²/2) of (m,) bundles, 1 on average; N remembers its past: AR(1)."""

    def __init__(self, rng: np.random.Generator, sigma: float, memory: float) -> None:
        self._rng, self._sigma, self._memory = rng, sigma, memory
        self._last: Floats = np.zeros(0)

    def draw(self, size: int) -> Floats:
        """(size,) the next factors; the first are drawn from the stationary distribution."""
        fresh = self._rng.standard_normal(size)
        if self._memory and self._last.size:
            fresh *= (1.0 - self._memory**2) ** 0.5
            fresh += self._memory * self._last
        self._last = fresh
        factors = fresh * self._sigma
        factors -= self._sigma**2 / 2
        return np.exp(factors, out=factors)

    def append(self, row: int) -> None:
        """Add a bundle that has the past of the one in ``row``."""
        if self._last.size:
            self._last = np.append(self._last, self._last[row])


class Wandering:
    """The factors of each initial bundle's load, cycle by cycle."""

    def __init__(self, scenario: Scenario) -> None:
        own, burst = scenario.wander, scenario.burst
        self._sigma, self._factor, self._bundles = own.sigma, burst.factor, scenario.bundles
        self._own = LogNormal(np.random.default_rng([scenario.seed, 6]), own.sigma, own.memory)
        self._rng = np.random.default_rng([scenario.seed, 7])
        self._begins = 1.0 - float(np.exp(-burst.a_day * scenario.seconds / DAY_S))
        self._cycle, self._from = -scenario.warm_up, burst.cycle
        self._ends = 1.0 - float(np.exp(-scenario.seconds / burst.lasting))
        self.bursting: Bools = np.zeros(self._bundles, dtype=np.bool_)
        self.active = bool(self._sigma or self._begins)

    def step(self) -> Floats:
        """(bundles,) the factors of the next cycle."""
        factors = np.ones(self._bundles)
        if self._sigma:
            factors = self._own.draw(self._bundles)
        if self._begins:
            drawn = self._rng.random(self._bundles)
            begins = self._begins if self._cycle >= self._from else 0.0
            self.bursting = np.where(self.bursting, drawn >= self._ends, drawn < begins)
            factors[self.bursting] *= self._factor
        self._cycle += 1
        return factors
