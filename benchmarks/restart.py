"""All brokers of a fleet start at once: how long until each serves what it owns.

A hundred real agents have a thousand bundles each, by the records. This is the situation after an
outage of Redis in which all leases ended, or after the whole fleet was stopped. Each agent reads
its own records, claims its bundles page by page, and renews its lease in between. Redis and the
hundred agents share this machine's cores. The time starts with the first agent's start and ends
when all agents agree with the store. It should be less than a lease, ten seconds, so that no broker
counts as dead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from redis import Redis

from agent.agent import Agent
from agent.links import Links
from agent.reports.outbox import Outbox
from agent.settings import AgentSettings
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.ownership import Bundles, no_kafka
from benchmarks.waiting import until
from deploy.redis_server import RedisServer
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.server.connections import redis_client

CLUSTER: Final = "restart"
FLEETS: Final = ((20, 500), (100, 1000))
"""Brokers, and bundles of each."""
LEASE_S: Final = 10.0
_PATIENCE_S: Final = 300.0


def measure(folder: Path) -> list[Figure]:
    """Measure two sizes of fleets; each starts, ends, and starts again."""
    figures: list[Figure] = []
    with RedisServer(folder / "redis") as server:
        for brokers, bundles in FLEETS:
            with redis_client(server.url) as client:
                client.flushall()
                fleet = _Fleet(server.url, brokers, bundles)
                fleet.start(1, loaded=True)
                fleet.stop()
                before = _busy_s(client)
                took = fleet.start(2, loaded=False)
                busy = _busy_s(client) - before
                fleet.stop()
            large = (brokers, bundles) == FLEETS[-1]
            size = f"{brokers} brokers with {bundles} bundles each"
            bar = Bar(Limit.AT_MOST, LEASE_S, "two cores for all of them") if large else None
            figures += [
                figure(f"restart.{brokers}x{bundles}", took, "s", f"until {size} serve", bar),
                figure(
                    f"restart.{brokers}x{bundles}_server",
                    1e6 * busy / (brokers * bundles),
                    "us",
                    "Redis's CPU time for a bundle",
                ),
            ]
    return figures


class _Fleet:
    def __init__(self, url: str, brokers: int, bundles: int) -> None:
        self._url, self._brokers = url, brokers
        step = (1 << 32) // (brokers * bundles)
        self._bundles = [
            f"t/n/0x{row * step:08x}_0x{(row + 1) * step:08x}" for row in range(brokers * bundles)
        ]
        self._agents: list[Agent] = []
        with redis_client(url) as client:
            gate = ClusterGate(client)
            closure = gate.open(CLUSTER, 1)
            if closure is not None:
                gate.open(CLUSTER, 1, closure.history)

    def start(self, session: int, *, loaded: bool) -> float:
        """Start all brokers; returns the seconds until each agrees with the store."""
        self._agents = [
            self._agent(row, session, self._bundles[row :: self._brokers] if loaded else ())
            for row in range(self._brokers)
        ]
        began = time.monotonic()
        for agent in self._agents:
            agent.start()
        until(lambda: all(agent.seeded for agent in self._agents), "the fleet to own", _PATIENCE_S)
        return time.monotonic() - began

    def stop(self) -> None:
        """Stop all brokers cleanly, so that the next processes need not wait for their leases."""
        for agent in self._agents:
            agent.stop()
        for agent in self._agents:
            agent.join(10.0)

    def _agent(self, row: int, session: int, loaded: Sequence[str]) -> Agent:
        settings = AgentSettings(CLUSTER, f"broker-{row}:8080", session, report_interval=3600.0)
        links = Links.of(settings, redis_client(self._url), Outbox(no_kafka))
        return Agent(Bundles(loaded), settings, links)


def _busy_s(client: Redis) -> float:
    """The server's processor time so far."""
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    spent: Any = client.info("cpu")
    return float(spent["used_cpu_user"]) + float(spent["used_cpu_sys"])
