"""A whole agent on a real store, without its thread: each turn of its loop is a call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from redis import Redis

from agent.agent import Agent
from agent.clock import watch_server_time
from agent.links import Links
from agent.lookup.claiming import Claims
from agent.ownership.seen import Seen
from agent.reports.outbox import Outbox
from agent.reports.reporting import Reporter
from agent.settings import AgentSettings
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.command_streams import CommandStream
from sinks.redis.hints import PlacementHints
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.service_urls import UrlStore
from sinks.redis.topics import TopicStore
from tests.agent.shelf import Shelf
from tests.agent.support import SESSION, Clock, Recorder
from tests.support.opening import server_ms
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate


class Host:
    """An agent whose loop is turned by hand; its reports land on a shelf."""

    def __init__(  # noqa: PLR0913 - whose agent it is, and its settings
        self,
        client: Redis,
        cluster: str,
        name: str,
        *loaded: str,
        session: int = SESSION,
        broker: Recorder | None = None,
        forget_every: float = 3_600.0,
        handed_over: Callable[[float], object] = lambda _: None,
    ) -> None:
        self.clock = Clock()
        self.broker = broker or Recorder(*loaded)
        self.shelf = Shelf()
        self.seen = Seen(None)
        self.outbox = Outbox(lambda: self.shelf)
        settings = AgentSettings(
            cluster, name, session, longest_wait=0.001, forget_every=forget_every
        )
        links = Links(
            store=OwnershipStore(client),
            leases=Leases(client),
            commands=CommandStream(client, cluster, name),
            reporter=Reporter(self.outbox, cluster, name),
            urls=UrlStore(client),
            seen=self.seen,
            claims=Claims(
                cluster,
                name,
                OwnershipStore(client),
                PlacementHints(client),
                np.random.default_rng(1),
                self.clock,
                lambda: server_ms(client),
            ),
            topics=TopicStore(client),
            clock=self.clock,
            server_time=watch_server_time(),
        )
        self.agent = Agent(self.broker, settings, links, handed_over)

    def reports(self) -> int:
        self.outbox.pump()
        return len(self.shelf.sent)


def hints(client: Redis, cluster: str, *brokers: str) -> None:
    candidates = tuple(Candidate(broker, 0.5) for broker in brokers)
    ClusterGate(client).set_hints(cluster, 1, Hints(round=1, candidates=candidates, each=0.01))
