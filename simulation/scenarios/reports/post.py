"""Reports that are made now and then, and are lost or late on their way.

Each broker makes one every so many seconds, at a moment of its own. A report that arrives after a
newer one is dropped, as `trimtab.intake.snapshot` does.
"""

from __future__ import annotations

import numpy as np

from simulation.scenarios.scenario import Scenario
from trimtab.arrays import Ints
from trimtab.state.pace import Pace, learn_pace


class Post:
    """The reports of n brokers on their way."""

    def __init__(self, scenario: Scenario, brokers: int) -> None:
        posted = scenario.reports
        self._rng = np.random.default_rng([scenario.seed, 5])
        self._lost, self._late_ms = posted.lost, 1000 * posted.late
        self._every_ms = max(1, round(1000 * (posted.every or scenario.seconds)))
        phases = self._rng.random(brokers) * self._every_ms
        self._next_ms: Ints = np.rint(phases).astype(np.int64)
        self._started = False
        self._under_way: Ints = np.zeros((3, 0), dtype=np.int64)
        """Row of the broker, when its report was made, and when it arrives; by time made."""
        self.made_ms: Ints = np.zeros(brokers, dtype=np.int64)
        """(n,) when each broker made its newest report that has arrived."""
        self.arrived_ms: Ints = np.zeros(brokers, dtype=np.int64)
        """(n,) when that one arrived."""
        self.paces: dict[int, Pace] = {}
        """Row of a broker to how often its reports arrive."""

    def collect(self, now_ms: int) -> None:
        """Make the reports that are due, and take in those that have arrived."""
        if not self._started:
            self._start(now_ms)
        while (due := np.flatnonzero(self._next_ms <= now_ms)).size:
            self._send(due)
        broker, made, arrives = self._under_way
        here = arrives <= now_ms
        # In the order they arrive: `fold` judges each by the newest one before.
        for at in np.flatnonzero(here)[np.argsort(arrives[here], kind="stable")].tolist():
            row = int(broker[at])
            if made[at] > self.made_ms[row]:
                self._learn(row, int(arrives[at] - self.arrived_ms[row]))
                self.made_ms[row], self.arrived_ms[row] = made[at], arrives[at]
        self._under_way = self._under_way[:, ~here]

    def _learn(self, row: int, gap_ms: int) -> None:
        pace = learn_pace(self.paces.get(row), gap_ms, 1)
        if pace is not None:
            self.paces[row] = pace

    def _start(self, now_ms: int) -> None:
        """Every broker's last report before the first cycle has arrived."""
        self._next_ms += now_ms
        self.made_ms = self._next_ms - self._every_ms
        self.arrived_ms = self.made_ms.copy()
        self._started = True

    def _send(self, due: Ints) -> None:
        made = self._next_ms[due]
        late = np.rint(self._rng.uniform(0.0, self._late_ms, due.size)).astype(np.int64)
        kept = self._rng.random(due.size) >= self._lost
        self._under_way = np.hstack((self._under_way, np.stack((due, made, made + late))[:, kept]))
        self._next_ms[due] += self._every_ms
