"""The whole simulation: brokers' agents, the job, two servers, Kafka, and the faults.

`simulation.ownership.oracle` checks what must hold at every moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, TypeVar

import numpy as np

from simulation.ownership.faults import FAULTS
from simulation.ownership.host import LEASE_MARGIN_S, SESSIONS_FROM, Host
from simulation.ownership.links import JobLink, Link
from simulation.ownership.manager import Kafka, Manager, names_of
from simulation.ownership.network import NO_FAULTS, Clock, Killed, Odds
from simulation.ownership.oracle import Oracle, Violation
from simulation.ownership.redis.rules import FREE
from simulation.ownership.redis.server import MemoryServer
from simulation.ownership.stores import Stores
from sinks.errors import Fenced, SinkError
from trimtab.store.ring import equal_edges
from trimtab.wire.ownership import Change, Record

__all__ = ["Size", "Tally", "Violation", "World"]

T = TypeVar("T")

_DEEPEST: Final = 3
_CALM_SECONDS: Final = 240.0
_FULL_CHECK: Final = 1000
"""Steps between two full checks."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of each cluster."""

    brokers: int = 4
    namespaces: int = 2
    bundles: int = 4
    """Bundles per namespace."""


LARGE: Final = Size(brokers=8, namespaces=8, bundles=128)
"""Two clusters of these have 2,048 bundles."""

CLUSTERS: Final = ("one", "two")


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


class World:
    """A simulated world; everything is drawn from ``seed``, so a seed repeats its run."""

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
        """``margin_s``: how long before its lease ends a broker stops serving. ``weights``: how
        often a fault is drawn, instead of its row's weight. ``in_time``: the auditor may judge by
        times: no clock steps, and neither the relay nor a broker is very late. ``beyond``: adds a
        pair of faults that is known to break the protocol (`simulation.ownership.faults`)."""
        self.beyond = beyond
        self.rng = np.random.default_rng(seed)
        self._odds = odds or Odds()
        self._margin_s = margin_s
        self._size = size or Size()
        drawn = {name: fault.weight for name, fault in FAULTS.items()}
        self._draw_fault = _lots({**drawn, **(weights or {})})
        self.clock = Clock()
        self.oracle = Oracle(lambda: self.clock.now, in_time=in_time)
        self.stores = Stores(self.clock, self.rng, self._accepted, CLUSTERS)
        self.journal: dict[str, dict[str, Record]] = {cluster: {} for cluster in CLUSTERS}
        self.relay_from = 0.0
        """The relay carries nothing until then."""
        self.faults: Counter[str] = Counter()
        self.acting: list[object] = []
        self._generations = self._steps = self._kills = 0
        self._rebuilds = self._restored = self._jobs = 0
        self._sessions = count(SESSIONS_FROM)
        self.hosts: list[Host] = []
        self.managers: list[Manager] = []
        self._bundles = {cluster: self._populate(cluster) for cluster in CLUSTERS}
        self.add_manager()

    def _populate(self, cluster: str) -> int:
        size = self._size
        bundles = [
            bundle
            for number in range(size.namespaces)
            for bundle in names_of(f"{cluster}/n{number}", equal_edges(size.bundles))
        ]
        for number, name in enumerate(self._names()):
            self.add_host(name, cluster, bundles[number :: size.brokers])
        return len(bundles)

    def _names(self) -> tuple[str, ...]:
        return tuple(f"broker-{number}:8080" for number in range(self._size.brokers))

    def run(self, transitions: int) -> Tally:
        """Run until this many changes were accepted, then until all is quiet; raises Violation."""
        self._begin()
        while self.oracle.transitions < transitions:
            self.step()
        self._calm_down()
        self.oracle.audited(self.stores.master.now_ms())
        self.faults["broker is killed amid a step"] = self._kills + sum(h.kills for h in self.hosts)
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

    def a_host(self) -> Host:
        return self.hosts[self.rng.integers(len(self.hosts))]

    def a_manager(self) -> Manager:
        return self.managers[self.rng.integers(len(self.managers))]

    def soon(self, mean: float) -> float:
        """Seconds until something happens."""
        return float(self.rng.exponential(mean))

    def act_as(self, actor: T, act: Callable[[T], object]) -> None:
        # An actor does not interrupt itself.
        if actor in self.acting:
            return
        self.acting.append(actor)
        try:
            act(actor)
        except Killed:
            self._replace(actor)
        finally:
            self.acting.pop()
        self._bury()

    def _replace(self, actor: object) -> None:
        """Replace a job that was killed; brokers' machines restart by themselves."""
        if actor in self.managers:
            self.managers = [each for each in self.managers if each is not actor]
            self.add_manager()

    def _bury(self) -> None:
        for host in self.hosts:
            if host.ended and host not in self.acting:
                self._kills += host.kills
                self.stores.disconnect(host.link)
        self.hosts = [host for host in self.hosts if not host.ended or host in self.acting]

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

    # Checks

    def _accepted(self, cluster: str, change: Change) -> None:
        self.oracle.accepted(cluster, change)

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

    # Parts

    @property
    def master(self) -> MemoryServer:
        return self.stores.master

    def _claim(self, held: int) -> int:
        if held and held != self._generations:
            raise Fenced("a newer job has claimed")
        self._generations += 1
        return self._generations

    def add_manager(self) -> None:
        """Add a new job; of the earlier ones only the last keeps running."""
        self._jobs += 1
        link = JobLink(self.stores.master, self.clock, self.rng, self._odds, self._meanwhile)
        self.stores.connect(link)
        kafka = Kafka(self.journal, self._claim, self.oracle.audit.see_command, self._rebuilt)
        for gone in self.managers[:-1]:
            self.stores.disconnect(gone.link)
        job = Manager(link, kafka, CLUSTERS, self._names(), self.rng, f"job-{self._jobs}")
        self.managers = [*self.managers[-1:], job]

    def _rebuilt(self, restored: int) -> None:
        self._rebuilds += 1
        self._restored += restored

    def add_host(self, name: str, cluster: str, loaded: Sequence[str] = ()) -> None:
        """Add a machine with a process of this name; other machines may have the same name."""
        link = Link(
            self.stores.master,
            self.clock,
            self.rng,
            self._odds,
            self._meanwhile,
            cluster=cluster,
            broker=name,
        )
        self.stores.connect(link)
        others = [each for each in self._names() if each != name]
        host = Host(others, link, self.clock, self.rng, self._sessions, self.oracle)
        host.margin_s = self._margin_s
        host.start(loaded)
        self.hosts.append(host)

    def _set_odds(self) -> None:
        for wire in self.stores.wires:
            wire.odds, wire.cut = self._odds, False
        for host in self.hosts:
            host.hangs_until = 0.0


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
