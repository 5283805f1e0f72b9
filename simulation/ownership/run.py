"""The whole simulation: draws what happens in a world, and which fault breaks it.

`simulation.ownership.oracle` checks what must hold at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simulation.ownership.faults import FAULTS
from simulation.ownership.host import LEASE_MARGIN_S, Host
from simulation.ownership.manager import Manager
from simulation.ownership.network import NO_FAULTS, Odds
from simulation.ownership.redis.rules import FREE
from simulation.ownership.world import CLUSTERS, Size, World
from sinks.errors import SinkError

_DEEPEST: Final = 3
_CALM_SECONDS: Final = 240.0
_FULL_CHECK: Final = 1000
"""Steps between two full checks."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of what a run has seen."""

    transitions: int
    seconds: float
    faults: dict[str, int]
    rebuilds: int
    restored: int
    events: dict[str, int]
    """Accepted changes by event."""


class Simulation(World):
    """A world in which things happen and break; a seed repeats its run."""

    def __init__(  # noqa: PLR0913 - what is drawn, and how
        self,
        seed: int,
        odds: Odds | None = None,
        margin_s: float = LEASE_MARGIN_S,
        size: Size | None = None,
        weights: Mapping[str, float] | None = None,
        in_time: bool = False,
        beyond: bool = False,
    ) -> None:
        """As `World`; ``weights`` says how often a fault is drawn, instead of its row's weight."""
        drawn = {name: fault.weight for name, fault in FAULTS.items()}
        self._draw_fault = _lots({**drawn, **(weights or {})})
        self._steps = 0
        super().__init__(seed, odds, margin_s, size, in_time, beyond)

    def run(self, transitions: int) -> Tally:
        """Run until this many changes were accepted, then until all is quiet; raises Violation."""
        self._begin()
        while self.oracle.transitions < transitions:
            self.step()
        self._calm_down()
        self.oracle.audited(self.stores.master.now_ms())
        self.faults["broker is killed within a step"] = self._kills + sum(
            h.kills for h in self.hosts
        )
        return Tally(
            self.oracle.transitions,
            self.clock.now,
            dict(sorted(self.faults.items())),
            self._rebuilds,
            self._restored,
            dict(sorted(self.oracle.events.items())),
        )

    def _begin(self) -> None:
        """Run without faults until every bundle has a record: a lost claim would leave a hole."""
        odds, self._odds = self._odds, NO_FAULTS
        self._set_odds()
        for _ in range(80):
            self._everyone()
        for cluster, bundles in self._bundles.items():
            assert len(self.stores.master.of(cluster).records) == bundles
        self._odds = odds
        self._set_odds()

    def step(self) -> None:
        self.clock.advance(float(self.rng.exponential(0.03)))
        self._act()
        self._steps += 1
        if self._steps % _FULL_CHECK == 0:
            self.oracle.check_all(self.hosts, self.stores.master)

    def _act(self) -> None:
        luck = self.rng.random()
        if luck < 0.55:
            self.act_as(self.a_host(), Host.turn)
        elif luck < 0.75:
            self.act_as(self.a_manager(), Manager.turn)
        elif luck < 0.88:
            self._relay(int(self.rng.integers(1, 60)))
        elif luck < 0.985:
            self._look_up()
        else:
            self._break_something()
        self._check()

    def _meanwhile(self, seconds: float | None = None) -> None:
        if len(self.acting) >= _DEEPEST:
            return
        if seconds is None:
            for _ in range(int(self.rng.integers(1, 4))):
                self.clock.advance(self.soon(0.3))
                self._act()
            return
        until = self.clock.now + seconds
        while self.clock.now < until:
            self.clock.advance(min(self.soon(0.3), until - self.clock.now))
            self._act()

    def _everyone(self) -> None:
        self.clock.advance(0.3)
        for manager in self.managers:
            self.act_as(manager, lambda manager: manager.turn(calm=True))
        for host in list(self.hosts):
            self.act_as(host, Host.turn)
        self._relay(1000)
        self._check()

    def _relay(self, most: int) -> None:
        if self.clock.now < self.relay_from:
            return
        audit = self.oracle.audit
        for cluster in CLUSTERS:
            try:
                changes = self.stores.master.take_journal(cluster, most)
            except SinkError:
                continue
            for change in changes:
                audit.see_change(change)
                known = self.journal[cluster].get(change.bundle, FREE)
                if change.record.epoch > known.epoch:
                    self.journal[cluster][change.bundle] = change.record
        self.oracle.audited(audit.clock)

    def _look_up(self) -> None:
        """Ask a broker for a bundle, most often for one whose owner is gone."""
        host = self.a_host()
        records = self.stores.master.of(host.cluster).records
        if not records:
            return
        names = list(records)
        for row in self.rng.integers(len(names), size=3).tolist():
            owner = records[names[row]].owner
            if owner is None or not self.stores.master.alive(host.cluster, owner):
                break
        self.act_as(_Thread(host), lambda thread: thread.host.look_up(names[row]))

    def _break_something(self) -> None:
        name = self._draw_fault(float(self.rng.random()))
        self.faults[name] += 1
        FAULTS[name].happen(self)
        self.oracle.may_lose |= FAULTS[name].loses

    def _check(self) -> None:
        self.oracle.check(self.stores.master)

    def _calm_down(self) -> None:
        """End the faults, then check that each record's owner serves its bundle after a while."""
        self._odds = replace(NO_FAULTS, load_s=self._odds.load_s)
        self.relay_from = 0.0
        self.stores.heal()
        self._set_odds()
        self.add_manager()
        self.managers = self.managers[-1:]
        end = self.clock.now + _CALM_SECONDS
        while self.clock.now < end:
            self._everyone()
        self.oracle.check_all(self.hosts, self.stores.master)
        for cluster in CLUSTERS:
            records = self.stores.master.of(cluster).records
            self.oracle.served_by_owners(cluster, self.hosts, records)


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread that answers a client, apart from the agent's own."""

    host: Host


def _lots(weights: Mapping[str, float]) -> Callable[[float], str]:
    """Returns a function that picks a fault by a number from 0 to 1."""
    names = list(weights)
    bounds = np.cumsum(list(weights.values()))

    def draw(luck: float) -> str:
        return names[int(np.searchsorted(bounds, luck * bounds[-1], side="right"))]

    return draw
