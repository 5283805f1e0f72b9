"""A machine with a broker and its agent: it crashes, is killed within a step, hangs, restarts.

Several machines may run as one broker: a pod was scheduled again while the old one lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, Protocol

import numpy as np

from agent.agent import Agent
from agent.clock import watch_server_time
from agent.leasing import Superseded
from agent.links import Links
from agent.lookup.claiming import Claims, NoPlace
from agent.ownership.holdings import Holdings
from agent.ownership.seen import Seen
from agent.settings import AgentSettings
from simulation.ownership.broker import (
    Broker,
    EvenHints,
    NoTopics,
    UnreadReports,
    UnreadUrls,
)
from simulation.ownership.links import Link
from simulation.ownership.network import Clock, Killed
from sinks.errors import SinkError
from trimtab.model import NO_EPOCH, Epoch
from trimtab.store.lookup import STEPS, LookupAction

LEASE_MARGIN_S: Final = 1.0
SESSIONS_FROM: Final = 1_800_000_000_000
DISKS_LOST: Final = 0.3
"""The share of crashes that lose the disk."""
BACK_AFTER_S: Final = 10.0
"""The mean time until a machine is back."""
FASTEST: Final = 0.04
"""The largest fraction by which a machine's clock runs fast or slow."""


class Watcher(Protocol):
    """Learns what a process may serve as soon as it may."""

    def begins(self, host: Host, bundle: str, epoch: Epoch) -> None: ...

    def ends(self, host: Host, bundle: str | None) -> None:
        """Note that the host no longer serves the bundle; None: any bundle."""


class Unwatched:
    """A watcher that does nothing, for a world that looks by itself."""

    def begins(self, host: Host, bundle: str, epoch: Epoch) -> None:
        pass

    def ends(self, host: Host, bundle: str | None) -> None:
        pass


class Host:
    """A machine; ``drift``: the fraction by which its clock runs fast (below 0: slow)."""

    def __init__(  # noqa: PLR0913 - a machine, and its world
        self,
        others: Sequence[str],
        link: Link,
        clock: Clock,
        rng: np.random.Generator,
        sessions: count[int] | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """Machines that may run as one broker share ``sessions``."""
        self.name, self.cluster = link.broker, link.cluster
        self._hints = EvenHints(others)
        self.link = link
        self._clock = clock
        self._rng = rng
        self.drift = float(rng.uniform(-FASTEST, FASTEST))
        self.seen = Seen(None)
        self._sessions = count(SESSIONS_FROM) if sessions is None else sessions
        self._watcher = watcher or Unwatched()
        self.session = 0
        self.kills = 0
        """How often its process was killed within a step."""
        self.hangs_until = 0.0
        self.ended = False
        """A later process of its name has replaced it for good."""
        self.margin_s = LEASE_MARGIN_S
        self.agent: Agent | None = None
        self.broker = Broker(link)
        self.claims: Claims

    def start(self, loaded: Sequence[str] = ()) -> None:
        """Start a new process, which remembers what is on its disk."""
        self.session = next(self._sessions)
        self.broker = Broker(self.link, set(loaded))
        settings = AgentSettings(
            self.cluster,
            self.name,
            self.session,
            lease_margin=self.margin_s,
            longest_wait=0.001,
            forget_every=30.0,
        )
        server_time = watch_server_time()
        self.claims = Claims(
            self.cluster,
            self.name,
            self.link,
            self._hints,
            self._rng,
            self._time,
            lambda: server_time.estimate_ms(self._time()),
        )
        links = Links(
            store=self.link,
            leases=self.link,
            commands=self.link,
            reporter=UnreadReports(),
            urls=UnreadUrls(),
            seen=self.seen,
            claims=self.claims,
            topics=NoTopics(),
            clock=self._time,
            server_time=server_time,
        )
        agent = Agent(self.broker, settings, links)
        # These replace the agent's own holdings and also tell the watcher.
        watched = _Watched(self._time, self, self._watcher)
        agent._holdings = agent._lease._holdings = agent._obeyer.holdings = watched
        self.agent, self.broker.serves = agent, agent.serves

    def crash(self) -> None:
        """End the process at once, perhaps with its disk, and start it again later."""
        self._end(disk_lost=bool(self._rng.random() < DISKS_LOST))

    def _end(self, *, disk_lost: bool, again: bool = True) -> None:
        self.agent = None
        self._watcher.ends(self, None)
        self.link.forget()
        if disk_lost:
            self.seen = Seen(None)
        self.ended = not again
        if again:
            self._come_back()

    def _come_back(self) -> None:
        self._clock.later(float(self._rng.exponential(BACK_AFTER_S)), self.start)

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        """Handle what ends the process, as `Agent._run` does."""
        agent = self.agent
        try:
            yield
        except Killed:
            self.kills += 1
            self.crash()
        except Superseded:
            try:
                if agent is not None:
                    agent.give_way()
            except Killed:
                self.kills += 1
            self._end(disk_lost=False, again=False)

    def _time(self) -> float:
        return 1000.0 + self._clock.now * (1 + self.drift)

    @property
    def runs(self) -> bool:
        return self.agent is not None and self._clock.now >= self.hangs_until

    def leave(self, drain_s: float = 5.0) -> None:
        """Stop the process cleanly: it gives its bundles away, then its lease up; or it leaves
        both to the next process of its name."""
        if self.agent is not None and self.runs:
            with self._mortal():
                self.agent.stop(drain_s)
                self.agent.end()
                self._end(disk_lost=False)

    def turn(self) -> None:
        """Run one turn of the agent's loop, unless the process is gone or hangs."""
        if self.agent is not None and self.runs:
            with self._mortal():
                self.agent.turn()

    def look_up(self, bundle: str) -> None:
        """Look a bundle up here for a client: a broker gets it if its owner is gone."""
        if not self.runs:
            return
        try:
            record = self.link.record(self.cluster, bundle)
            if record is not None and STEPS[record.state] is LookupAction.GONE:
                return
            owner = None if record is None else record.owner
            if owner is not None and self.link.holds(self.cluster, owner):
                return
            expect = NO_EPOCH if record is None else record.epoch
            self.claims.claim(bundle, expect, self.claims.draw(bundle, ()))
        except (SinkError, NoPlace, Killed):
            # The thread that answers the client gives up.
            return

    def serves(self, bundle: str) -> bool:
        """Whether this host would serve it to clients at this moment."""
        return self.agent is not None and self.agent.serves(bundle)

    def serving(self) -> list[str]:
        """The bundles that this host would serve to clients at this moment."""
        agent = self.agent
        if agent is None:
            return []
        return [bundle for bundle in agent._holdings.bundles() if agent.serves(bundle)]


class _Watched(Holdings):
    """Holdings that tell the watcher what they hold."""

    def __init__(self, clock: Callable[[], float], host: Host, watcher: Watcher) -> None:
        super().__init__(clock)
        self._host, self._watcher = host, watcher

    def hold(self, bundle: str, epoch: Epoch) -> None:
        super().hold(bundle, epoch)
        self._watcher.begins(self._host, bundle, epoch)

    def drop(self, bundle: str) -> None:
        super().drop(bundle)
        self._watcher.ends(self._host, bundle)

    def clear(self) -> None:
        super().clear()
        self._watcher.ends(self._host, None)
