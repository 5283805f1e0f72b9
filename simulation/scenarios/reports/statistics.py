"""The brokers' measurements of their bundles, and the job's averages of them over time.

drawn    = load x e^(sigma N - sigma²/2), drawn again each cycle: its mean is the load; N may
           remember its past
averages = `trimtab.intake.averages.sample`, from statistics that changed, once an interval;
           restarted if the broker has not seen the bundle, as `trimtab.intake.snapshot` does
"""

from __future__ import annotations

import numpy as np

from simulation.scenarios.world.state import World
from simulation.scenarios.world.wandering import LogNormal
from trimtab.arrays import Bools, Floats, Ints
from trimtab.intake.averages import LONG_SAMPLES, SHORT_SAMPLES, decay, sample
from trimtab.intake.snapshot import IntakeSettings


class Statistics:
    """The statistics of the m bundles of one world, in its units of load."""

    def __init__(self, world: World, cycles: int) -> None:
        """``cycles``: the number of recent draws that are kept."""
        n, m, scenario = len(world.brokers), world.base.size, world.scenario
        self._world, self._sigma = world, scenario.noise
        rng = np.random.default_rng([scenario.seed, 2])
        self._noise = LogNormal(rng, scenario.noise, scenario.noise_memory)
        self._interval_ms = round(1000 * IntakeSettings().sample_interval)
        self.drawn: Floats = np.tile(world.load, (cycles, 1))
        """(cycles, m) draws, newest first."""
        self.short: Floats = np.zeros(m)
        self.long: Floats = np.zeros(m)
        self.changed = True
        """Whether the averages differ from those after the last cycle."""
        self._samples: Ints = np.zeros(m, dtype=np.int64)
        self._last: Floats = np.full(m, np.nan)
        self._news: Bools = np.zeros(m, dtype=np.bool_)
        self._sampled_ms: Ints = np.zeros(n, dtype=np.int64)

    def draw(self) -> None:
        """Draw this cycle's figures."""
        self._follow()
        load = self._world.load
        if self._sigma:
            load = load * self._noise.draw(load.size)
        if len(self.drawn) > 1:
            self.drawn = np.vstack((load, self.drawn[:-1]))
        else:
            self.drawn = load[np.newaxis]

    def average(self, shown: Floats, seen: Bools | None, reported_ms: Ints) -> None:
        """Average what brokers show: (m,) figures of the bundles in ``seen`` (None: all), in
        reports of (n,) ``reported_ms``."""
        owner, unseen = self._world.owner, self._samples == 0
        if seen is not None:
            unseen &= seen
        self._news |= shown != self._last
        self._news |= shown == 0
        self._last = shown
        first = (self._sampled_ms == 0) & (reported_ms > 0)
        due = reported_ms - self._sampled_ms >= self._interval_ms
        mask = self._news if due.all() else self._news & due[owner]
        mask = unseen | (mask if seen is None else mask & seen)
        self._sampled_ms = np.where(first, reported_ms, self._sampled_ms)
        self.changed = bool(mask.any())
        if self.changed:
            self._sampled_ms[owner[mask & ~unseen]] = reported_ms[owner[mask & ~unseen]]
            self._sample(shown, mask)

    def _sample(self, shown: Floats, mask: Bools) -> None:
        self.short, _ = sample(self.short, self._samples, shown, mask, SHORT_SAMPLES)
        self.long, self._samples = sample(self.long, self._samples, shown, mask, LONG_SAMPLES)
        self._news &= ~mask

    def _follow(self) -> None:
        """Restart rows that were split or merged, and bundles that are new to their brokers."""
        world = self._world
        for row, half in world.halved:
            share = world.base[half] / (world.base[row] + world.base[half])
            self.drawn = np.hstack((self.drawn, self.drawn[:, [row]] * share))
            self.drawn[:, row] *= 1 - share
            for name in ("short", "long", "_samples", "_last", "_news"):
                column = getattr(self, name)
                setattr(self, name, np.append(column, column[row]))
            self._noise.append(row)
        world.halved.clear()
        if world.joined:
            # This may be the world's own column.
            self.drawn = self.drawn.copy()
        for row, gone in world.joined:
            self.drawn[:, row] += self.drawn[:, gone]
            self.drawn[:, gone] = 0
        world.joined.clear()
        if world.unseen:
            self._samples[world.unseen] = 0
            world.unseen.clear()


class Smoothed:
    """The averages of n brokers' resources and traffic, as `trimtab.intake.snapshot` keeps them."""

    def __init__(self, brokers: int) -> None:
        self._figures: Floats = np.full((9, brokers), np.nan)
        self._reported_ms: Ints = np.zeros(brokers, dtype=np.int64)
        self._half_life = IntakeSettings().half_life

    def follow(self, figures: Floats, reported_ms: Ints) -> Floats:
        """(9, n) the averages, with (9, n) ``figures`` of the reports that are new."""
        elapsed = (reported_ms - self._reported_ms) / 1000
        stepped = decay(self._figures, figures, elapsed, self._half_life)
        known = ~np.isnan(self._figures[0])
        self._figures = np.where(known & (elapsed <= 0), self._figures, stepped)
        self._reported_ms = reported_ms
        return self._figures
