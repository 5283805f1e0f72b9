"""Reports that arrive some seconds after they were made.

Each broker shows the bundles it had when it made its report, with their load in the last cycle it
counted: each broker's cycles end at a different moment.
"""

from __future__ import annotations

import numpy as np

from simulation.scenarios.world import World
from trimtab.arrays import Bools, Floats, Ints


class Lateness:
    """The lateness of the n brokers of one world."""

    def __init__(self, world: World) -> None:
        n, delay = len(world.brokers), world.scenario.delay
        self._world, self._low, self._high = world, 1000 * delay.low, 1000 * delay.high
        self._rng = np.random.default_rng([world.scenario.seed, 3])
        self._cycle_ms = 1000 * world.scenario.seconds
        self._phase_ms = self._rng.random(n) * self._cycle_ms
        self.cycles = 2 + int(self._high / self._cycle_ms) if self._high else 1
        """The number of cycles whose figures are shown."""
        self.reported_ms: Ints = np.zeros(n, dtype=np.int64)
        """(n,) the time at which each broker made its newest report that has arrived."""
        self.age: Ints = np.zeros(n, dtype=np.int64)
        """(n,) the age of its figures in cycles."""

    def hear(self, now_ms: int) -> None:
        """Take in each broker's newest report."""
        world = self._world
        made = np.full(len(world.brokers), now_ms)
        if self._high:
            made -= np.rint(self._rng.uniform(self._low, self._high, made.size)).astype(np.int64)
            made = np.maximum(made, self.reported_ms)
            since = now_ms - self._phase_ms
            self.age = np.maximum(np.ceil((since - made) / self._cycle_ms), 0).astype(np.int64)
        self.reported_ms = np.where(world.up, made, self.reported_ms)

    def shown(self, drawn: Floats) -> tuple[Floats, Bools | None]:
        """(m,) the loads that owners show, and which bundles they show; None: all of them.

        ``drawn`` is (cycles, m) loads as measured, newest first.
        """
        world = self._world
        if not self._high:
            return drawn[0], ~world.gone if world.heirs else None
        shown = drawn[self.age[world.owner], np.arange(world.owner.size)]
        return shown, (world.arrived_ms <= self.reported_ms[world.owner]) & ~world.gone

    def carried(self, drawn: Floats, shown: Floats, seen: Bools) -> tuple[Floats, Ints, Ints]:
        """(n,) load, topics and bundles of each broker when it made its report."""
        world, made, n = self._world, self.reported_ms, len(self._world.brokers)
        owner = world.owner[seen]
        load = np.bincount(owner, shown[seen], n).astype(np.float64)
        topics = np.bincount(owner, world.topics[seen], n).astype(np.int64)
        listed = np.bincount(owner, minlength=n)
        oldest = int(made[world.up].min())
        world.stays = [stay for stay in world.stays if stay.left_ms > oldest]
        for stay in world.stays:
            if stay.arrived_ms <= made[stay.broker] < stay.left_ms:
                load[stay.broker] += drawn[self.age[stay.broker], stay.row]
                topics[stay.broker] += world.topics[stay.row]
                listed[stay.broker] += 1
        return load, topics, listed
