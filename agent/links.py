"""What an agent gets at its start: its settings, and its connections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from redis import Redis

from agent.clock import boot_clock, watch_server_time
from agent.lookup.claiming import Claims
from agent.ownership.seen import Seen
from agent.ports import Commands, LeaseKeeper, Reports, Store, Topics, UrlBook
from agent.reports.outbox import Outbox
from agent.reports.reporting import Cadence, Reporter
from sinks.redis.command_streams import CommandStream
from sinks.redis.hints import PlacementHints
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.service_urls import UrlStore
from sinks.redis.topics import TopicStore
from trimtab.store.server_time import ServerTime


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of one broker's agent; all times in seconds."""

    cluster: str
    broker: str
    session: int
    """The broker's start, epoch milliseconds: its reports' ``start_timestamp``."""
    report_interval: float = 5.0
    """Pulsar's shortest. Longer: a hot broker is noticed late; shorter: more work everywhere."""
    report_offset: float = 0.0
    """Delay of the first report: a fleet started at once should not report at once."""
    lease: float = 10.0
    """Longer: a dead broker's bundles wait; shorter: a pause of the process costs its bundles."""
    lease_margin: float = 1.0
    """Serving stops here this long before the lease ends in Redis: for drift between the clocks."""
    longest_wait: float = 0.5
    """Longest single wait for commands; must stay below the Redis client's timeout."""
    look_every: float = 60.0
    """Between two looks at all of its records. Longer: a bundle whose command was lost waits;
    shorter: more reading."""
    forget_every: float = 3_600.0
    """Time between two looks for old records, 500 at a time. Longer: the file of a broker that gets
    many bundles grows; shorter: more reading."""
    urls_every: float = 3_600.0
    """Time between two writes of the broker's service URLs, which are kept for a day; changed ones
    are written at once."""
    state: Path | None = None
    """File that keeps the records seen; without one a restart forgets them."""


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
