"""Reports that arrive some seconds after they were made.

Each broker shows the bundles it had when it made its report, with their load in the last cycle it
counted: each broker's cycles end at a different moment. How old reports are is drawn again each
cycle, or follows from how they are posted (`simulation.scenarios.reports.post`). A bundle that
returns to a broker before that has reported without it is hidden until the next report, where the
job would show it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulation.scenarios.reports.post import Post
from simulation.scenarios.world.state import World
from trimtab.arrays import Bools, Floats, Ints
from trimtab.settings import RoundSettings
from trimtab.state.pace import allowed_silence

_RUN: Final = 20
"""Reports of a broker lost in a row, after which the next show no older figures than these."""


class Lateness:
    """The lateness of the n brokers of one world."""

    def __init__(self, world: World) -> None:
        n, delay = len(world.brokers), world.scenario.delay
        self._world, self._low, self._high = world, 1000 * delay.low, 1000 * delay.high
        self._rng = np.random.default_rng([world.scenario.seed, 3])
        self._cycle_ms = 1000 * world.scenario.seconds
        self._phase_ms = self._rng.random(n) * self._cycle_ms
        posted = world.scenario.reports
        self._post = Post(world.scenario, n) if posted.used else None
        oldest = self._high + 1000 * (posted.late + _RUN * posted.every) * posted.used
        lost = _RUN * (posted.lost > 0)
        self.cycles = 2 + lost + int(oldest / self._cycle_ms) if self.late else 1
        """The number of cycles whose figures are shown."""
        self.made_ms: Ints = np.zeros(n, dtype=np.int64)
        """(n,) the time at which each broker made its newest report that has arrived."""
        self.reported_ms: Ints = np.zeros(n, dtype=np.int64)
        """(n,) the time at which it counts as reported: when it arrived, where that is known."""
        self.age: Ints = np.zeros(n, dtype=np.int64)
        """(n,) the age of its figures in cycles."""

    @property
    def late(self) -> bool:
        """Whether a round sees older reports than of this moment."""
        return self._post is not None or bool(self._high)

    def hear(self, now_ms: int) -> None:
        """Take in each broker's newest report."""
        up = self._world.up
        made = np.full(up.size, now_ms)
        if self._high:
            made -= np.rint(self._rng.uniform(self._low, self._high, made.size)).astype(np.int64)
            made = np.maximum(made, self.made_ms)
        reported = made
        if self._post is not None:
            self._post.collect(now_ms)
            made, reported = self._post.made_ms, self._post.arrived_ms
        if self.late:
            since = now_ms - self._phase_ms
            age = np.ceil((since - made) / self._cycle_ms)
            self.age = np.clip(age, 0, self.cycles - 1).astype(np.int64)
        self.made_ms = np.where(up, made, self.made_ms)
        self.reported_ms = np.where(up, reported, self.reported_ms)

    def silent(self, settings: RoundSettings) -> Bools:
        """(n,) brokers that are up and whose silence is too long, measured against the newest
        report, as `trimtab.state.liveness.heard` does."""
        up = self._world.up
        if self._post is None:
            return np.zeros(up.size, dtype=np.bool_)
        newest = int(self.reported_ms[up].max(initial=0))
        paces = self._post.paces
        allowed = [allowed_silence(paces.get(row), settings) for row in range(up.size)]
        return up & (self.reported_ms < newest - 1000 * np.array(allowed))

    def shown(self, drawn: Floats) -> tuple[Floats, Bools | None]:
        """(m,) the loads that owners show, and which bundles they show; None: all of them.

        ``drawn`` is (cycles, m) loads as measured, newest first.
        """
        world = self._world
        if not self.late:
            return drawn[0], ~world.gone if world.heirs else None
        shown = drawn[self.age[world.owner], np.arange(world.owner.size)]
        return shown, (world.arrived_ms <= self.made_ms[world.owner]) & ~world.gone

    def carried(self, drawn: Floats, shown: Floats, seen: Bools) -> tuple[Floats, Ints, Ints]:
        """(k, n) load by kind, (n,) topics and bundles of brokers when they made their reports."""
        world, made, n = self._world, self.made_ms, len(self._world.brokers)
        owner = world.owner[seen]
        load = world.by_kind(owner, shown[seen], world.kind[seen])
        topics = np.bincount(owner, world.topics[seen], n).astype(np.int64)
        listed = np.bincount(owner, minlength=n)
        oldest = int(made[world.up].min())
        world.stays = [stay for stay in world.stays if stay.left_ms > oldest]
        for stay in world.stays:
            if stay.arrived_ms <= made[stay.broker] < stay.left_ms:
                load[world.kind[stay.row], stay.broker] += drawn[self.age[stay.broker], stay.row]
                topics[stay.broker] += world.topics[stay.row]
                listed[stay.broker] += 1
        return load, topics, listed
