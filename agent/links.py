"""The connections that an agent gets at its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from redis import Redis

from agent.clock import boot_clock, watch_server_time
from agent.lookup.claiming import Claims
from agent.ownership.seen import Seen
from agent.ports import Commands, LeaseKeeper, Reports, Store, Topics, UrlBook
from agent.reports.outbox import Outbox
from agent.reports.reporting import Cadence, Reporter
from agent.settings import AgentSettings
from sinks.redis.command_streams import CommandStream
from sinks.redis.hints import PlacementHints
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.service_urls import UrlStore
from sinks.redis.topics import TopicStore
from trimtab.store.server_time import ServerTime


@dataclass(frozen=True, slots=True)
class Links:
    """The agent's connections, and its own clock."""

    store: Store
    leases: LeaseKeeper
    commands: Commands
    reporter: Reports
    urls: UrlBook
    seen: Seen
    claims: Claims
    topics: Topics
    clock: Callable[[], float]
    server_time: ServerTime
    """Redis's clock as seen by this machine's; updated at each renewal."""

    @classmethod
    def of(
        cls,
        settings: AgentSettings,
        client: Redis,
        outbox: Outbox,
        cadence: Cadence | None = None,
    ) -> Links:
        """Build the real links; ``client`` is this agent's alone, as it blocks while reading."""
        store = OwnershipStore(client)
        server_time = watch_server_time()
        claims = Claims(
            settings.cluster,
            settings.broker,
            store,
            PlacementHints(client),
            np.random.default_rng(),
            boot_clock,
            lambda: server_time.estimate_ms(boot_clock()),
        )
        return cls(
            store=store,
            leases=Leases(client),
            commands=CommandStream(client, settings.cluster, settings.broker),
            reporter=Reporter(outbox, settings.cluster, settings.broker, cadence),
            urls=UrlStore(client),
            seen=Seen(settings.state, settings.cluster, settings.broker),
            claims=claims,
            topics=TopicStore(client),
            clock=boot_clock,
            server_time=server_time,
        )
