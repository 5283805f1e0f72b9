"""A machine with a broker and its agent: it crashes, is killed amid a step, hangs, starts again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from agent.agent import Agent
from agent.broker import CannotLoad
from agent.links import AgentSettings, Links
from agent.lookup.claiming import Claims
from agent.seen import Seen
from simulation.ownership.network import Clock, Killed, Link
from trimtab.wire.hints import Hints
from trimtab.wire.load_report import LocalBrokerData
from trimtab.wire.ownership import Candidate

CLUSTER = "sim"
LEASE_MARGIN_S = 1.0
SESSIONS_FROM = 1_800_000_000_000
DISKS_LOST = 0.3
"""Of the crashes."""
BACK_AFTER_S = 10.0
"""The mean."""


@dataclass(slots=True)
class Broker:
    """Holds what it is given; now and then it cannot load."""

    rng: np.random.Generator
    loaded: set[str] = field(default_factory=set)

    def bundles(self) -> set[str]:
        return self.loaded

    def load_report(self) -> LocalBrokerData:
        return LocalBrokerData()

    def prepare(self, bundle: str) -> None:
        """Nothing to warm."""

    def load(self, bundle: str) -> None:
        if self.rng.random() < 0.01:
            raise CannotLoad(bundle)
        self.loaded.add(bundle)

    def unload(self, bundle: str) -> None:
        self.loaded.discard(bundle)

    def topics(self, bundle: str) -> Mapping[int, Sequence[float]]:  # noqa: ARG002 - of any
        return {}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self.loaded.discard(bundle)
        self.loaded.update(children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self.loaded.difference_update(parts)
        self.loaded.add(whole)


class _Hints:
    """Every broker is as good as another."""

    def __init__(self, brokers: Sequence[str]) -> None:
        candidates = tuple(Candidate(broker, 0.5) for broker in brokers)
        self._hints = Hints(round=1, candidates=candidates, each=0.01)

    def read(self, cluster: str) -> Hints:  # noqa: ARG002 - there is one
        return self._hints

    def placed(self, cluster: str) -> int:  # noqa: ARG002 - there is one
        return 0


class _Silent:
    """Reports that nobody reads."""

    def offer(self, data: LocalBrokerData, now: float) -> None:
        pass


class Host:
    """``drift``: by what part its clock runs fast (or slow, below 0)."""

    def __init__(
        self, name: str, others: Sequence[str], link: Link, clock: Clock, rng: np.random.Generator
    ) -> None:
        self.name = name
        self._hints = _Hints(others)
        self.link = link
        self._clock = clock
        self._rng = rng
        self.drift = float(rng.uniform(-0.04, 0.04))
        self._seen = Seen(None)
        self._starts = 0
        self.kills = 0
        """How often its process was killed amid a step."""
        self.hangs_until = 0.0
        self.margin_s = LEASE_MARGIN_S
        self.agent: Agent | None = None
        self.broker = Broker(rng)

    def start(self, loaded: Sequence[str] = ()) -> None:
        """A new process: it remembers what is on its disk."""
        self._starts += 1
        self.broker = Broker(self._rng, set(loaded))
        settings = AgentSettings(
            CLUSTER,
            self.name,
            SESSIONS_FROM + self._starts,
            lease_margin=self.margin_s,
            longest_wait=0.001,
        )
        links = Links(
            store=self.link,
            leases=self.link,
            commands=self.link,
            reporter=_Silent(),
            seen=self._seen,
            claims=Claims(CLUSTER, self.name, self.link, self._hints, self._rng, self._time),
            clock=self._time,
        )
        self.agent = Agent(self.broker, settings, links)

    def crash(self) -> None:
        """The process ends at once, perhaps its disk with it, and is started again later."""
        self._end(disk_lost=bool(self._rng.random() < DISKS_LOST))

    def _end(self, *, disk_lost: bool) -> None:
        self.agent = None
        self.link.commands.forget()
        if disk_lost:
            self._seen = Seen(None)
        self._clock.later(float(self._rng.exponential(BACK_AFTER_S)), self.start)

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        try:
            yield
        except Killed:
            self.kills += 1
            self.crash()

    def _time(self) -> float:
        return 1000.0 + self._clock.now * (1 + self.drift)

    def leave(self) -> None:
        """The process ends as it should: it gives everything away, then its lease up."""
        if self.agent is not None and self._clock.now >= self.hangs_until:
            with self._mortal():
                self.agent.stop(drain_s=5.0)
                self.agent.end()
                self._end(disk_lost=False)

    def turn(self) -> None:
        """One turn of the agent's loop, unless the process is gone or hangs."""
        if self.agent is not None and self._clock.now >= self.hangs_until:
            with self._mortal():
                self.agent.turn()

    def serving(self) -> list[str]:
        """What clients would be served here at this moment."""
        agent = self.agent
        return [] if agent is None else [b for b in self.broker.loaded if agent.serves(b)]
