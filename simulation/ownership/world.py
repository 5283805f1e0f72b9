"""All of it together, and what must hold at every moment.

No two agents serve overlapping ranges; an epoch is never given out that is not above every one
before it; the records tile every namespace while the store is open; the auditor, who reads what
reaches Kafka, finds no rule broken; and when the faults end, every bundle is served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeVar

import msgspec
import numpy as np

from simulation.ownership.host import CLUSTER, LEASE_MARGIN_S, Host
from simulation.ownership.manager import Manager, names_of
from simulation.ownership.network import NO_FAULTS, Clock, Link, Odds
from simulation.ownership.rules import FREE
from simulation.ownership.server import MemoryCommands, MemoryServer
from sinks.errors import SinkError
from trimtab.audit import NOTES, Audit
from trimtab.model import NO_EPOCH, Epoch, namespace_of, parse_bundle
from trimtab.ownership import Event, State
from trimtab.ring import equal_edges
from trimtab.tiling import flaws
from trimtab.wire.command import Command, Kind
from trimtab.wire.ownership import Candidate, Change, Record, Transition

T = TypeVar("T")

BROKERS: Final = tuple(f"broker-{number}:8080" for number in range(6))
NAMESPACES: Final = ("t/one", "t/two", "t/three")
_BEGUN_MS: Final = 1_800_000_000_000
_DEEPEST: Final = 3
_CALM_SECONDS: Final = 240.0


class Violation(AssertionError):
    """What must not be, when, and how it came to be."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run has seen."""

    transitions: int
    seconds: float
    faults: dict[str, int]
    rebuilds: int
    restored: int
    events: dict[str, int]
    """Accepted changes by what happened."""


@dataclass(slots=True)
class _Story:
    highest: dict[str, Epoch] = field(default_factory=dict)
    changes: dict[str, list[Change]] = field(default_factory=dict)
    transitions: int = 0
    rebuilds: int = 0
    restored: int = 0
    events: Counter[str] = field(default_factory=Counter)
    tiled: tuple[int, int] = (0, 0)
    """Transitions and rebuilds when the records were last seen to tile."""


class World:
    """Everything is drawn from ``seed``: the same seed gives the same run."""

    def __init__(
        self, seed: int, odds: Odds | None = None, margin_s: float = LEASE_MARGIN_S
    ) -> None:
        """``margin_s``: how long before its lease ends a broker stops serving."""
        self._rng = np.random.default_rng(seed)
        self._odds = odds or Odds()
        self._margin_s = margin_s
        self.clock = Clock()
        self.jump_ms = 0
        self.server = MemoryServer(self._server_ms, self._accepted)
        self._journal: dict[str, Record] = {}
        self._audit = Audit()
        self._generations = 0
        self._story = _Story()
        self.faults: Counter[str] = Counter()
        self._acting: list[object] = []
        self._hosts = [self._host(name) for name in BROKERS]
        self._managers = [self._manager()]
        bundles = [
            bundle for namespace in NAMESPACES for bundle in names_of(namespace, equal_edges(4))
        ]
        for number, host in enumerate(self._hosts):
            host.start(bundles[number :: len(self._hosts)])
        self._bundles = len(bundles)

    def run(self, transitions: int) -> Tally:
        """Until so many changes were accepted, then until all is quiet; raises Violation."""
        self._begin()
        while self._story.transitions < transitions:
            self._step()
        self._calm_down()
        self._audited(self._server_ms())
        self.faults["broker is killed amid a step"] = sum(host.kills for host in self._hosts)
        return Tally(
            self._story.transitions,
            self.clock.now,
            dict(sorted(self.faults.items())),
            self._story.rebuilds,
            self._story.restored,
            dict(sorted(self._story.events.items())),
        )

    def _begin(self) -> None:
        """Without faults until every bundle has a record: a claim that is lost is a hole."""
        odds, self._odds = self._odds, NO_FAULTS
        self._set_odds()
        for _ in range(40):
            self._everyone(calm=True)
        assert len(self.server.contents.records) == self._bundles
        self._odds = odds
        self._set_odds()

    def _step(self) -> None:
        self.clock.advance(float(self._rng.exponential(0.03)))
        self._act()
        self._check()

    def _act(self) -> None:
        luck = self._rng.random()
        if luck < 0.55:
            self._one(self._hosts, Host.turn)
        elif luck < 0.75:
            self._one(self._managers, Manager.turn)
        elif luck < 0.88:
            self._relay(int(self._rng.integers(1, 60)))
        elif luck < 0.985:
            self._look_up()
        else:
            self._break_something()

    def _one(self, actors: list[T], act: Callable[[T], None]) -> None:
        actor = actors[self._rng.integers(len(actors))]
        # Nobody is interrupted by himself.
        if actor in self._acting:
            return
        self._acting.append(actor)
        try:
            act(actor)
        finally:
            self._acting.pop()

    def _meanwhile(self) -> None:
        if len(self._acting) < _DEEPEST:
            for _ in range(int(self._rng.integers(1, 4))):
                self.clock.advance(float(self._rng.exponential(0.3)))
                self._act()
            self._check()

    def _everyone(self, *, calm: bool) -> None:
        self.clock.advance(0.3)
        for manager in self._managers:
            manager.turn(calm=calm)
        for host in self._hosts:
            host.turn()
        self._relay(1000)
        self._check()

    def _relay(self, most: int) -> None:
        entries = self.server.contents.journal[:most]
        del self.server.contents.journal[:most]
        for change in entries:
            self._audit.see_change(msgspec.structs.replace(change, cluster=CLUSTER))
            known = self._journal.get(change.bundle, FREE)
            if change.record.epoch > known.epoch:
                self._journal[change.bundle] = change.record
        self._audited(self._audit.clock)

    def _look_up(self) -> None:
        """A broker is asked for a bundle and claims it for two candidates if nobody owns it."""
        records = self.server.contents.records
        names = sorted(records)
        if not names:
            return
        bundle = names[self._rng.integers(len(names))]
        record = records[bundle]
        if record.state is State.DELETED:
            return
        if record.owner is not None and self.server.alive(record.owner):
            return
        drawn = [BROKERS[row] for row in self._rng.choice(len(BROKERS), 3, replace=False)]
        name = f"lookup/{bundle}/{record.epoch.generation}.{record.epoch.counter}"
        asked = Transition(
            id=name,
            bundle=bundle,
            event=Event.ASSIGN,
            expect=record.epoch,
            actor=drawn[0],
            candidates=tuple(Candidate(broker, 0.5) for broker in drawn[1:]),
            each=0.01,
            commands=tuple(
                Command(
                    id=f"{name}/own", cluster=CLUSTER, broker=broker, kind=Kind.OWN, bundle=bundle
                )
                for broker in drawn[1:]
            ),
        )
        try:
            self.server.apply(CLUSTER, asked)
        except SinkError:
            return

    def _break_something(self) -> None:
        name = sorted(_FAULTS)[self._rng.integers(len(_FAULTS))]
        self.faults[name] += 1
        _FAULTS[name](self)

    # Faults

    def crash(self) -> None:
        host = self._hosts[self._rng.integers(len(self._hosts))]
        if host not in self._acting:
            host.crash()

    def leave(self) -> None:
        host = self._hosts[self._rng.integers(len(self._hosts))]
        if host not in self._acting:
            host.leave()

    def hang(self) -> None:
        host = self._hosts[self._rng.integers(len(self._hosts))]
        host.hangs_until = self.clock.now + float(self._rng.exponential(8.0))

    def cut(self) -> None:
        host = self._hosts[self._rng.integers(len(self._hosts))]
        host.link.cut = True
        self.clock.later(
            float(self._rng.exponential(8.0)), lambda: setattr(host.link, "cut", False)
        )

    def restart_server(self) -> None:
        # Rarely, or the store would never be open.
        if self._rng.random() < 0.4:
            lost = [0, int(self._rng.integers(1, 50)), None][self._rng.integers(3)]
            self.faults[f"server lost {'all' if lost is None else 'some' if lost else 'none'}"] += 1
            self.server.restart(lost)

    def replace_job(self) -> None:
        """The one before goes on until it notices."""
        self._managers = [*self._managers[-1:], self._manager()]

    # What must hold

    def _accepted(self, change: Change) -> None:
        story, epoch = self._story, change.record.epoch
        story.transitions += 1
        story.events[f"{change.event} to {change.record.state}"] += 1
        story.changes.setdefault(change.bundle, []).append(change)
        del story.changes[change.bundle][:-12]
        if epoch <= story.highest.get(change.bundle, NO_EPOCH):
            self._fail(f"epoch {epoch} of {change.bundle} is not new", change.bundle)
        story.highest[change.bundle] = epoch

    def _check(self) -> None:
        serving: dict[str, list[tuple[int, int, str, str]]] = {}
        for host in self._hosts:
            for bundle in host.serving():
                namespace, (low, high) = parse_bundle(bundle)
                serving.setdefault(namespace, []).append((low, high, host.name, bundle))
        for served in serving.values():
            served.sort()
            for (_, high, one, bundle), (low, _, other, overlap) in pairwise(served):
                if low < high:
                    self._fail(f"{one} serves {bundle}, {other} serves {overlap}", bundle, overlap)
        self._check_tiling()

    def _check_tiling(self) -> None:
        story, records = self._story, self.server.contents.records
        now = story.transitions, story.rebuilds
        if story.tiled == now or not self.server.is_open or len(records) < self._bundles:
            return
        story.tiled = now
        standing: dict[str, list[str]] = {namespace: [] for namespace in NAMESPACES}
        for bundle, record in records.items():
            if record.state is not State.DELETED:
                standing[namespace_of(bundle)].append(bundle)
        for namespace, bundles in standing.items():
            if found := flaws(bundles):
                self._fail(f"{namespace} does not tile: {found}", *bundles[:1])

    def _audited(self, until_ms: int) -> None:
        found = [each for each in self._audit.settle(until_ms) if each.kind not in NOTES]
        if found:
            self._fail(f"the auditor finds {found[0]}")

    def _fail(self, what: str, *bundles: str) -> None:
        stories = [f"  {change}" for bundle in bundles for change in self._story.changes[bundle]]
        raise Violation("\n".join([f"at {self.clock.now:.3f} s: {what}", *stories]))

    def _calm_down(self) -> None:
        """The faults end: soon every bundle is served by the owner that its record names."""
        self._odds = NO_FAULTS
        self._set_odds()
        self._managers = self._managers[-1:]
        end = self.clock.now + _CALM_SECONDS
        while self.clock.now < end:
            self._everyone(calm=True)
        records = self.server.contents.records
        served = {bundle: host.name for host in self._hosts for bundle in host.serving()}
        for bundle, record in records.items():
            if record.state is not State.DELETED and served.get(bundle) != record.owner:
                self._fail(f"{bundle} is served by {served.get(bundle)}, not as {record}", bundle)

    # Parts

    def _server_ms(self) -> int:
        return _BEGUN_MS + self.jump_ms + round(1000 * self.clock.now)

    def _claim(self) -> int:
        self._generations += 1
        return self._generations

    def _manager(self) -> Manager:
        name = f"job-{self._generations}"
        return Manager(
            self.server,
            self._journal,
            BROKERS,
            self._claim,
            self._rebuilt,
            self._audit.see_command,
            self._rng,
            name,
        )

    def _rebuilt(self, restored: int) -> None:
        self._story.rebuilds += 1
        self._story.restored += restored

    def _host(self, name: str) -> Host:
        commands = MemoryCommands(self.server, name)
        link = Link(self.server, commands, self.clock, self._rng, self._odds, self._meanwhile)
        host = Host(name, [each for each in BROKERS if each != name], link, self.clock, self._rng)
        host.margin_s = self._margin_s
        return host

    def _set_odds(self) -> None:
        for host in self._hosts:
            host.link.odds, host.link.cut, host.hangs_until = self._odds, False, 0.0


_FAULTS: Final = {
    "broker crashes": World.crash,
    "broker leaves": World.leave,
    "broker hangs": World.hang,
    "broker is cut off": World.cut,
    "server restarts": World.restart_server,
    "job is replaced": World.replace_job,
}
