"""Brokers in this process that die, fall asleep and come back, each with a real agent beside it.

A death is as sudden as a `kill -9`: at the next thing that the agent asks of the world it is gone,
no answer reaches it, and nothing is served from that instant.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from unittest import mock

from redis import Redis

from agent.agent import Agent
from agent.leasing import Superseded
from agent.links import Links
from agent.ports import Commands, LeaseKeeper, Store
from agent.reports.outbox import Outbox
from agent.reports.reporting import Cadence, Reporter
from agent.settings import AgentSettings
from sinks.redis.command_streams import CommandStream
from sinks.redis.server.connections import redis_client
from tests.faults.serving import Clock, Diary, WrittenDown
from tests.support.seesaw import REPORT_SECONDS, SeesawBroker
from trimtab.intake.report_cadence import ReportingSettings
from trimtab.ownership import State
from trimtab.wire.command import Command
from trimtab.wire.ownership import Record

CADENCE: Final = Cadence(ReportingSettings(max_interval=1.0), heartbeat=0.5)


class Died(BaseException):
    """Not an Exception, so that no handler catches it."""


class Life:
    """Whether the process lives; ``points`` maps a broker's callback to what happens in it."""

    def __init__(self) -> None:
        self.dead = False
        self.longest_call_s = 0.0
        self.points: dict[str, Callable[[str], object]] = {}

    def check(self) -> None:
        if self.dead:
            raise Died

    def reach(self, point: str, bundle: str) -> None:
        self.check()
        if point in self.points:
            self.points[point](bundle)
            self.check()


class Mortal:
    """Passes calls on to ``inner``; no answer reaches the agent once it is dead."""

    def __init__(self, inner: object, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def call(*args: Any, **more: Any) -> Any:
            life, begin = self._life, time.monotonic()
            life.check()
            try:
                return method(*args, **more)
            finally:
                life.longest_call_s = max(life.longest_call_s, time.monotonic() - begin)
                life.check()

        return call


class Heard(CommandStream):
    """Keeps a copy of every command, because Redis may forget what it has sent."""

    def __init__(self, client: Redis, cluster: str, broker: str, copies: list[Command]) -> None:
        super().__init__(client, cluster, broker)
        self._copies = copies

    def read(self, block_ms: int) -> list[tuple[str, Command]]:
        entries = super().read(block_ms)
        self._copies += (command for _, command in entries)
        return entries


class FragileBroker(SeesawBroker):
    """A restless broker with failpoints in its callbacks."""

    life: Life

    def load(self, bundle: str) -> None:
        self.life.reach("load", bundle)
        super().load(bundle)

    def unload(self, bundle: str) -> None:
        self.life.reach("unload", bundle)
        super().unload(bundle)

    def topics(self, bundle: str) -> Mapping[int, tuple[float, ...]]:
        self.life.reach("topics", bundle)
        return super().topics(bundle)

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self.life.reach("split", bundle)
        super().split(bundle, children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self.life.reach("merge", whole)
        super().merge(parts, whole)


class Node:
    """One broker of the fleet, over all of its lives."""

    def __init__(  # noqa: PLR0913 - what a broker's configuration says
        self,
        name: str,
        broker: Callable[[Iterable[str] | None], FragileBroker],
        settings: Callable[[int], AgentSettings],
        redis_url: str,
        outbox: Outbox,
        diary: Diary,
        clock: Clock,
    ) -> None:
        self.name = name
        self.clock = clock
        self._make, self._settings = broker, settings
        self._redis_url, self._outbox, self._diary = redis_url, outbox, diary
        self.heard: list[Command] = []
        self.life = Life()

    def start(self, loaded: Iterable[str] | None = None) -> None:
        """Start it with these bundles loaded; by default with those that the fleet begins with."""
        self.life, self._stopping = Life(), threading.Event()
        broker = self._make(loaded)
        broker.life = self.life
        settings = self._settings(broker.started_ms)
        client = redis_client(self._redis_url)
        links = Links.of(settings, client, self._outbox)
        stream = Heard(client, settings.cluster, self.name, self.heard)
        # Cast: a Mortal has the methods of its inner link.
        links = replace(
            links,
            store=cast(Store, Mortal(links.store, self.life)),
            leases=cast(LeaseKeeper, Mortal(links.leases, self.life)),
            commands=cast(Commands, Mortal(stream, self.life)),
            reporter=Reporter(self._outbox, settings.cluster, self.name, CADENCE),
            clock=self.clock,
        )
        self._seen = links.seen
        with mock.patch("agent.agent.Holdings", partial(WrittenDown, self._diary, self.name)):
            self.agent = Agent(broker, settings, links)
        self.broker = broker
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return not self.life.dead

    @property
    def longest_call_s(self) -> float:
        """The longest call to Redis since it was started."""
        return self.life.longest_call_s

    def kill(self) -> None:
        """End it at this instant; any thread may call this, its own too."""
        self.life.dead = True
        cast(WrittenDown, self.agent._holdings).die()
        if threading.current_thread() is not self._thread:
            self._thread.join(10.0)

    def restart(self) -> None:
        """Start a new process after a `kill`: nothing is loaded, and the file of what it saw is
        there."""
        self._thread.join(10.0)
        self.start(())

    def stop(self) -> None:
        """Shut it down cleanly."""
        self._stopping.set()
        self._thread.join(10.0)

    def _run(self) -> None:
        try:
            with suppress(Died, Superseded):
                while not self._stopping.is_set():
                    self.life.check()
                    time.sleep(self.agent.turn())
        finally:
            self.agent._holdings.clear()
            self._seen.close()


def node(  # noqa: PLR0913 - what a broker's configuration says
    name: str,
    broker: Callable[[Iterable[str] | None], FragileBroker],
    cluster: str,
    redis_url: str,
    outbox: Outbox,
    diary: Diary,
    *,
    state: Path,
    lease_s: float,
    margin_s: float,
    clock: Clock,
) -> Node:
    """A broker of ``cluster`` that is not started yet."""

    def settings(session: int) -> AgentSettings:
        return AgentSettings(
            cluster=cluster,
            broker=name,
            session=session,
            report_interval=REPORT_SECONDS,
            lease=lease_s,
            lease_margin=margin_s,
            longest_wait=0.2,
            state=state,
        )

    return Node(name, broker, settings, redis_url, outbox, diary, clock)


def all_served(records: Mapping[str, Record], nodes: Mapping[str, Node]) -> bool:
    """Whether every bundle is served by a living broker that its record names."""
    standing = {b: r for b, r in records.items() if r.state is not State.DELETED}
    return bool(standing) and all(
        record.state is State.OWNED
        and record.owner is not None
        and nodes[record.owner].alive
        and nodes[record.owner].agent.serves(bundle)
        for bundle, record in standing.items()
    )
