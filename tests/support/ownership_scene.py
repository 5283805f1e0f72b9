"""Two brokers and a job without servers, to try one thing at a time; one request can go wrong.

`simulation.ownership.run` draws what happens; here it is said.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Final, Protocol, TypeVar

import numpy as np

from simulation.ownership.host import Host
from simulation.ownership.links import JobLink, Link
from simulation.ownership.manager import DEADLINE_MS, DIVISION, Kafka, Manager, names_of
from simulation.ownership.network import NO_FAULTS, Clock
from simulation.ownership.redis.server import MemoryServer
from trimtab.auditing.auditor import NOTES, Audit
from trimtab.model import parse_bundle
from trimtab.ownership import Event, State
from trimtab.store.requests import issue_commands
from trimtab.store.ring import equal_edges
from trimtab.tiling import flaws
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour, Record, Transition, TransitionOutcome

T = TypeVar("T")

CLUSTER: Final = "sim"
BROKERS: Final = ("a:8080", "b:8080")
A, B = BROKERS
QUARTERS: Final = names_of("t/n", equal_edges(4))
ABOVE: Final = dict(pairwise(QUARTERS))
CALM_S: Final = 60.0
"""After it a lease, a deadline and a rebuild are over."""
REST_S: Final = 32.0
"""In it leases and deadlines end, and every broker looks at all records again."""


class Fault(Protocol):
    """What becomes of a request."""

    def __call__(self, link: Awry, ask: Callable[[], T], /) -> T: ...


class Awry(Link):
    """One request goes wrong, once ``turns_awry`` was called."""

    _left = -1
    _fault: Fault
    _around: AbstractContextManager[object]

    def turns_awry(self, at: int, fault: Fault, around: AbstractContextManager[object]) -> None:
        """The ``at``-th from now, counted from 0; ``around`` it something else happens."""
        self._left, self._fault, self._around = at, fault, around

    def _through(self, ask: Callable[[], T]) -> T:
        self._left -= 1
        if self._left != -1:
            return ask()
        with self._around:
            return self._fault(self, ask)


class Scene:
    """Two brokers and a job; ``a`` serves the lower three quarters, ``b`` the last one.

    What must hold is checked whenever time passes.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.clock, self.audit = Clock(), Audit()
        self.jump_ms = 0
        """By how much the server's clock went forward."""
        self.server = MemoryServer(
            lambda: 1_800_000_000_000 + self.jump_ms + round(1000 * self.clock.now)
        )
        self.journal: dict[str, Record] = {}
        self.hosts = {}
        for name, other in (BROKERS, BROKERS[::-1]):
            link = Awry(self.server, self.clock, rng, NO_FAULTS, cluster=CLUSTER, broker=name)
            self.hosts[name] = Host([other], link, self.clock, rng)
        self._generations = 0
        self.rng = rng
        self.job = self.next_job()
        self._batch = 0
        self.hosts[A].start(QUARTERS[:3])
        self.hosts[B].start(QUARTERS[3:])
        self.passes(18.0)
        owners = [self.records[bundle].owner for bundle in QUARTERS]
        assert owners == [A, A, A, B]

    @property
    def records(self) -> dict[str, Record]:
        return self.server.of(CLUSTER).records

    @property
    def link(self) -> Awry:
        link = self.hosts[A].link
        assert isinstance(link, Awry)
        return link

    def next_job(self) -> Manager:
        link = JobLink(self.server, self.clock, self.rng, NO_FAULTS)
        kafka = Kafka({CLUSTER: self.journal}, self._claim, self.audit.see_command)
        self.job = Manager(link, kafka, (CLUSTER,), BROKERS, self.rng, f"job-{self._generations}")
        return self.job

    def _claim(self, _held: int) -> int:
        self._generations += 1
        return self._generations

    def asks(
        self, bundle: str, event: Event, told: CommandKind, to: str | None = None
    ) -> TransitionOutcome:
        """As the job, of a bundle as it stands; its owner is told."""
        self._batch += 1
        name, record = f"{event.value}-{self._batch}", self.records[bundle]
        above = ABOVE[bundle] if event is Event.MERGE else None
        command = Command(
            id=f"{name}/told",
            cluster=CLUSTER,
            broker=record.owner or "",
            kind=told,
            bundle=bundle,
            destination=to,
            division=DIVISION,
            neighbour=above,
        )
        asked = Transition(
            id=name,
            bundle=bundle,
            event=event,
            expect=record.epoch,
            broker=to,
            commands=(command,),
            neighbour=Neighbour(above, self.records[above].epoch) if above else None,
            within_ms=DEADLINE_MS,
        )
        caller = {"generation": self.job.generation, "batch": self._batch}
        done = self.server.apply_batch(CLUSTER, [asked], query_id="these", **caller)
        for told_so in issue_commands([asked], done.outcomes):
            self.audit.see_command(told_so)
        return done.outcomes[0]

    def passes(self, seconds: float) -> None:
        until = self.clock.now + seconds
        while self.clock.now < until:
            self._step()

    def _step(self) -> None:
        self.clock.advance(0.3)
        self.job.turn(calm=True)
        for host in self.hosts.values():
            host.turn()
        self.relays()
        self.checks()

    def comes_to_rest(self) -> None:
        """Time passes until nothing has been left to do for a while, but not for ever."""
        moved_at = self.clock.now
        until = moved_at + CALM_S
        while self.clock.now < min(until, moved_at + REST_S):
            self._step()
            if not self._rests:
                moved_at = self.clock.now

    @property
    def _rests(self) -> bool:
        """Whether no request is on its way, no broker is away, and owners serve what they own."""
        return (
            self.clock.is_idle
            and all(host.runs for host in self.hosts.values())
            and not any(self.server.of(CLUSTER).commands.values())
            and self.served() == self.owned()
        )

    def served(self) -> dict[str, str]:
        """The broker that serves each bundle."""
        return {bundle: host.name for host in self.hosts.values() for bundle in host.serving()}

    def owned(self) -> dict[str, str | None]:
        """The owner of each bundle that was not divided or merged, if it may serve it."""
        return {
            bundle: record.owner if record.state is State.OWNED else None
            for bundle, record in self.records.items()
            if record.state is not State.DELETED
        }

    def relays(self, most: int = 1000) -> None:
        """Of the journal, the oldest entries."""
        for change in self.server.take_journal(CLUSTER, most):
            self.audit.see_change(change)
            known = self.journal.get(change.bundle)
            if known is None or change.record.epoch > known.epoch:
                self.journal[change.bundle] = change.record

    def checks(self) -> None:
        serving = sorted(
            (parse_bundle(bundle)[1], host.name)
            for host in self.hosts.values()
            for bundle in host.serving()
        )
        for (one, _), (other, _) in pairwise(serving):
            assert one.high <= other.low, serving
        if self.server.is_open(CLUSTER):
            assert flaws(self.standing()) == []

    def standing(self) -> list[str]:
        return [b for b, record in self.records.items() if record.state is not State.DELETED]

    def ends_well(self) -> None:
        """Everything is served by its owner, and the auditor has nothing to say."""
        self.comes_to_rest()
        assert self.served() == self.owned()
        self.audit.see_open(CLUSTER, self.server.of(CLUSTER).opening.generation)
        found = self.audit.settle(self.server.now_ms() + 600_000)
        assert [str(each) for each in found if each.kind not in NOTES] == []
