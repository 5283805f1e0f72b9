"""The world of a simulation: brokers' agents, jobs, two servers and Kafka, and who acts.

`simulation.ownership.run` draws what happens in it, with the faults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

import numpy as np

from simulation.ownership.host import LEASE_MARGIN_S, SESSIONS_FROM, Host
from simulation.ownership.links import JobLink, Link
from simulation.ownership.manager import Kafka, Manager, names_of
from simulation.ownership.network import Clock, Killed, Odds
from simulation.ownership.oracle import Oracle
from simulation.ownership.redis.server import MemoryServer
from simulation.ownership.stores import Stores
from sinks.errors import Fenced
from trimtab.store.ring import equal_edges
from trimtab.wire.ownership import Change, Record

T = TypeVar("T")


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


class World(ABC):
    """Machines with brokers, jobs, two servers and a journal; all is drawn from ``seed``."""

    def __init__(  # noqa: PLR0913 - what is drawn, and how
        self,
        seed: int,
        odds: Odds | None = None,
        margin_s: float = LEASE_MARGIN_S,
        size: Size | None = None,
        in_time: bool = False,
        beyond: bool = False,
    ) -> None:
        """``margin_s``: how long before its lease ends a broker stops serving. ``in_time``: the
        auditor may judge by times: no clock steps, and neither the relay nor a broker is very late.
        ``beyond``: adds a pair of faults that is known to break the protocol
        (`simulation.ownership.faults`)."""
        self.beyond = beyond
        self.rng = np.random.default_rng(seed)
        self._odds = odds or Odds()
        self._margin_s = margin_s
        self._size = size or Size()
        self.clock = Clock()
        self.oracle = Oracle(lambda: self.clock.now, in_time=in_time)
        self.stores = Stores(self.clock, self.rng, self._accepted, CLUSTERS)
        self.journal: dict[str, dict[str, Record]] = {cluster: {} for cluster in CLUSTERS}
        self.relay_from = 0.0
        """The relay carries nothing until then."""
        self.faults: Counter[str] = Counter()
        self.acting: list[object] = []
        self._generations = self._kills = 0
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

    @abstractmethod
    def _meanwhile(self, seconds: float | None = None) -> None:
        """Let others act during a request; for this long if it hangs."""

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

    def _accepted(self, cluster: str, change: Change) -> None:
        self.oracle.accepted(cluster, change)

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
