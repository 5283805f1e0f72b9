"""A hundred real agents whose brokers report what the benchmark tells them to.

All brokers are equally busy. A little noise makes another one the idlest in each round. A *step*
makes one broker report a load that the shedder must answer with one move at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self

import numpy as np
from redis import Redis

from agent.agent import Agent
from agent.links import Links
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.reports.reporting import EVERY_BEAT
from agent.settings import AgentSettings
from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel, load_model
from simulation.profile import Profile
from sinks.redis.command_streams import CommandStream
from sinks.redis.server.connections import redis_client
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.reports.load_report import LocalBrokerData

CLUSTER: Final = "bench"
BROKERS: Final = 100
BUNDLES: Final = 20
"""Each broker's at the start."""
REPORT_SECONDS: Final = 1.0

_USAGE: Final = 0.5
_NOISE: Final = 0.01
_STEP_USAGE: Final = 0.35
_RATE: Final = 2000.0
_STEP_RATE: Final = 750.0

SETTINGS: Final = """
[intake]
sample_interval = 1.0
[settings.round]
shedding = "avg"
placement = "avg"
interval = 0.0
grace_period = 1.0
max_moves = 1
[settings.avg]
low_hits = 1
high_hits = 1
[settings.unload]
min_rate = 50.0
max_share = 0.2
"""
"""A fifth of a step's 1500 messages/s (in and out) may move: one bundle of 200 fits, not two."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A command and when its agent had read it (epoch ms, this machine's clock)."""

    command: Command
    at_ms: int


class StepBroker(SimulatedBroker):
    """Reports the same load with any bundles, until it is told to step."""

    def __init__(self, model: LoadModel, row: int) -> None:
        super().__init__(model, row, model.owned_at_start(row), wall_ms)
        self._noise = np.random.default_rng((model.profile.seed, row, 1))
        self._stepped = False
        self._reports = 0
        self.first_stepped = 0
        """Sequence number of the first report since the last step; 0 until it is made."""

    def step(self) -> None:
        self.first_stepped = 0
        self._stepped = True

    def rest(self) -> None:
        self._stepped = False

    def load_report(self) -> LocalBrokerData:
        data = super().load_report()
        self._reports += 1
        stepped = self._stepped
        if stepped and not self.first_stepped:
            self.first_stepped = self._reports
        usage = _USAGE + _NOISE * self._noise.random() + (_STEP_USAGE if stepped else 0.0)
        data.cpu.usage = usage * data.cpu.limit
        data.msg_rate_in = data.msg_rate_out = _RATE + (_STEP_RATE if stepped else 0.0)
        return data


class TimedCommands(CommandStream):
    """Reads an agent's commands, and notes when each command to give up a bundle was read."""

    def __init__(self, client: Redis, broker: str, noted: Callable[[Receipt], None]) -> None:
        super().__init__(client, CLUSTER, broker)
        self._noted = noted

    def read(self, block_ms: int) -> list[tuple[str, Command]]:
        entries = super().read(block_ms)
        now = wall_ms()
        for _, command in entries:
            if command.kind is CommandKind.TRANSFER:
                self._noted(Receipt(command, now))
        return entries


class StepFleet:
    """``with`` starts and stops it."""

    def __init__(self, kafka: str, redis: str) -> None:
        model = step_model()
        self.brokers = {name: StepBroker(model, row) for row, name in enumerate(model.brokers)}
        self._outbox = Outbox(partial(kafka_producer, kafka))
        self._receipts: dict[str, deque[Receipt]] = {name: deque() for name in model.brokers}
        self._arrived = threading.Condition()
        self._agents = [self._agent(name, row, redis) for row, name in enumerate(model.brokers)]

    def __enter__(self) -> Self:
        self._outbox.start()
        for agent in self._agents:
            agent.start()
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.stop()
        for agent in self._agents:
            agent.join(5.0)
        self._outbox.stop()

    @property
    def seeded(self) -> bool:
        """Whether every broker owns its bundles by record."""
        return all(agent.seeded for agent in self._agents)

    def step(self, broker: str, patience: float) -> Receipt | None:
        """Have a broker step and rest again; the first command that reached it, if one did."""
        received = self.told(broker, self.brokers[broker].step, patience)
        self.brokers[broker].rest()
        return received

    def told(self, broker: str, cause: Callable[[], object], patience: float) -> Receipt | None:
        """The first command to give up a bundle that reaches a broker after something is done."""
        receipts = self._receipts[broker]
        with self._arrived:
            receipts.clear()
        cause()
        with self._arrived:
            self._arrived.wait_for(lambda: bool(receipts), patience)
            return receipts[0] if receipts else None

    def _noted(self, receipt: Receipt) -> None:
        with self._arrived:
            self._receipts[receipt.command.broker].append(receipt)
            self._arrived.notify_all()

    def _agent(self, name: str, row: int, redis: str) -> Agent:
        broker, client = self.brokers[name], redis_client(redis)
        settings = AgentSettings(
            cluster=CLUSTER,
            broker=name,
            session=broker.started_ms,
            report_interval=REPORT_SECONDS,
            report_offset=REPORT_SECONDS * row / BROKERS,
        )
        links = Links.of(settings, client, self._outbox, EVERY_BEAT)
        links = replace(links, commands=TimedCommands(client, name, self._noted))
        return Agent(broker, settings, links)


def step_model() -> LoadModel:
    """Who owns what at the start: all bundles and all brokers alike."""
    bundles = BROKERS * BUNDLES
    profile = Profile(
        brokers=BROKERS,
        bundles=bundles,
        namespaces=bundles // 16,
        low=_USAGE,
        high=_USAGE,
        rate_sigma=0.0,
        cost_sigma=0.0,
    )
    return load_model(profile)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000
