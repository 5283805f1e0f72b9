"""A fleet of simulated brokers in one process, each with an agent as a real broker has."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial

import msgspec

from agent.agent import Agent
from agent.commands.obeying import Obeyed
from agent.links import Links
from agent.metrics import AgentMetrics
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.reports.reporting import EVERY_BEAT
from agent.settings import AgentSettings
from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel
from sinks.redis.server.connections import redis_client
from trimtab.wire.command import CommandKind


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Servers and cluster of the fleet, and how often its brokers report (seconds)."""

    kafka: str
    redis: str
    cluster: str
    report_interval: float = 5.0


class BrokerSnapshot(msgspec.Struct, frozen=True):
    """One broker: expected usage (fraction), bundles loaded, whether it agrees with the store."""

    usage: float
    bundles: int
    seeded: bool


class FleetSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """The fleet now; ``at`` is epoch milliseconds by this machine."""

    at: int
    brokers: dict[str, BrokerSnapshot]
    moves: int
    """Bundles that a command has brought to a new owner so far."""
    commands: dict[str, int]
    """Commands so far by kind and outcome: ``own done``."""
    reports: int
    """Load reports acknowledged by Kafka."""
    lost_reports: int

    @property
    def spread(self) -> float:
        """Usage of the hottest less that of the coldest broker, a fraction."""
        usages = [broker.usage for broker in self.brokers.values()]
        return max(usages) - min(usages)


class Fleet:
    """Start it once, stop it once; ``snapshot`` from any thread."""

    def __init__(
        self, model: LoadModel, settings: FleetSettings, metrics: AgentMetrics | None = None
    ) -> None:
        """``metrics`` shows its agents to Prometheus."""
        self._metrics = metrics or AgentMetrics()
        self._names = model.brokers
        self._outbox = Outbox(partial(kafka_producer, settings.kafka))
        self._metrics.count_reports(self._outbox)
        self._brokers = [
            SimulatedBroker(model, row, model.owned_at_start(row), _wall_ms)
            for row in range(len(model.brokers))
        ]
        self._agents = [
            self._agent(broker, row, settings) for row, broker in enumerate(self._brokers)
        ]

    def start(self) -> None:
        self._outbox.start()
        for agent in self._agents:
            agent.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask all agents first, then wait for them: they stop in parallel."""
        for agent in self._agents:
            agent.stop()
        for agent in self._agents:
            agent.join(timeout_s)
        self._outbox.stop(timeout_s)

    def snapshot(self) -> FleetSnapshot:
        """The current state; brokers are read one after another, so not all at the same moment."""
        obeyed: Counter[tuple[CommandKind, Obeyed]] = Counter()
        for agent in self._agents:
            obeyed.update(agent.obeyed())
        counts = self._outbox.counts()
        return FleetSnapshot(
            at=_wall_ms(),
            brokers={
                name: BrokerSnapshot(broker.usage(), len(broker.bundles()), agent.seeded)
                for name, broker, agent in zip(
                    self._names, self._brokers, self._agents, strict=True
                )
            },
            moves=obeyed[CommandKind.OWN, Obeyed.DONE],
            commands={f"{kind.value} {how.value}": n for (kind, how), n in sorted(obeyed.items())},
            reports=counts.delivered,
            lost_reports=counts.superseded + counts.failed,
        )

    def served(self) -> set[tuple[str, str]]:
        """Each broker with each bundle that it serves; read one after another."""
        agents = zip(self._names, self._brokers, self._agents, strict=True)
        return {
            (name, bundle)
            for name, broker, agent in agents
            for bundle in broker.bundles()
            if agent.serves(bundle)
        }

    def _agent(self, broker: SimulatedBroker, row: int, settings: FleetSettings) -> Agent:
        interval = settings.report_interval
        ours = AgentSettings(
            cluster=settings.cluster,
            broker=self._names[row],
            session=broker.started_ms,
            report_interval=interval,
            report_offset=interval * row / len(self._names),
        )
        client = redis_client(settings.redis)
        links = Links.of(ours, client, self._outbox, EVERY_BEAT)
        agent = Agent(broker, ours, links, partial(self._metrics.note_handover, settings.cluster))
        self._metrics.add(settings.cluster, ours.broker, agent)
        return agent


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
