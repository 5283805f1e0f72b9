"""A fleet that never comes to rest: half of it is busy, and every few seconds the other half."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import Final

from agent.agent import Agent
from agent.links import Links
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.settings import AgentSettings
from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel
from sinks.redis.server.connections import redis_client
from tests.support.refused_sockets import refused_sockets_collected
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData

SWING_MS: Final = 3000
HEAVY: Final = 1.6
LIGHT: Final = 0.4
REPORT_SECONDS: Final = 0.3


class SeesawBroker(SimulatedBroker):
    """Its every figure is far above the model's in one swing and far below it in the next."""

    def __init__(self, model: LoadModel, row: int, loaded: Iterable[str] | None = None) -> None:
        """With what the model gives it at the start, unless it is said what it has loaded."""
        at_start = model.owned_at_start(row) if loaded is None else loaded
        super().__init__(model, row, at_start, _wall_ms)
        self._side = row % 2

    def load_report(self) -> LocalBrokerData:
        report = super().load_report()
        factor = HEAVY if _wall_ms() // SWING_MS % 2 == self._side else LIGHT
        report.cpu.usage = min(report.cpu.usage * factor, report.cpu.limit)
        every: list[LocalBrokerData | BundleStats] = [report, *(report.last_stats or {}).values()]
        for figures in every:
            figures.msg_rate_in *= factor
            figures.msg_rate_out *= factor
            figures.msg_throughput_in *= factor
            figures.msg_throughput_out *= factor
        return report


class Seesaw:
    """Real agents on real Kafka and Redis; ``with`` starts and stops them."""

    def __init__(self, model: LoadModel, kafka: str, redis: str, cluster: str) -> None:
        self._outbox = Outbox(partial(kafka_producer, kafka))
        self._agents = [
            self._agent(SeesawBroker(model, row), name, cluster, redis)
            for row, name in enumerate(model.brokers)
        ]

    def __enter__(self) -> Seesaw:
        # Captured records would keep the sockets alive that __exit__ sees off.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._outbox.start()
        for agent in self._agents:
            agent.start()
        return self

    def __exit__(self, *_: object) -> None:
        with refused_sockets_collected():
            for agent in self._agents:
                agent.stop()
            for agent in self._agents:
                agent.join(5.0)
            self._outbox.stop()
            del self._outbox, self._agents

    @property
    def seeded(self) -> bool:
        """Whether every broker and the store agree on who owns what."""
        return all(agent.seeded for agent in self._agents)

    def _agent(self, broker: SeesawBroker, name: str, cluster: str, redis: str) -> Agent:
        settings = AgentSettings(
            cluster=cluster,
            broker=name,
            session=broker.started_ms,
            report_interval=REPORT_SECONDS,
        )
        return Agent(broker, settings, Links.of(settings, redis_client(redis), self._outbox))


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
