"""A broker dies: how long until other brokers serve all of its bundles.

There are a hundred brokers with real agents. One of them holds 650 bundles, the others twenty each.
The job runs next to them with a round a minute, and has nothing to balance. The agent of the full
broker stops without notice. The time starts there and ends when every one of its bundles is owned,
by its record, by a broker that is alive. A lease is ten seconds. Kafka, Redis, the job and the
hundred agents share this machine's cores.

No client looks up a topic meanwhile: a lookup would have its bundle placed as soon as the lease has
ended.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from redis import Redis

from agent.agent import Agent
from agent.links import Links
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.settings import AgentSettings
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.job import JobProcess
from deploy.stack import Stack
from simulation.broker import SimulatedBroker
from simulation.load_model import LoadModel, load_model
from simulation.profile import Profile
from sinks.redis.server.connections import redis_client
from trimtab.ownership import State
from trimtab.wire.keys import ownership_key
from trimtab.wire.ownership import Record

CLUSTER: Final = "failover"
BROKERS: Final = 100
FULL: Final = 650
OTHERS: Final = 20
LEASE_S: Final = 10.0
CRASHES: Final = 3
_PATIENCE_S: Final = 120.0

SETTINGS: Final = """
[settings.round]
shedding = "overload"
interval = 60.0
overloaded_threshold = 0.99
"""

_record = msgspec.json.Decoder(Record)


def measure(folder: Path) -> list[Figure]:
    """Measure several crashes, each of a fleet in a cluster of its own."""
    seconds: list[float] = []
    shares: list[float] = []
    with Stack(folder / "stack") as stack, JobProcess(stack, folder / "job", SETTINGS):
        for number in range(CRASHES):
            took, most = _Fleet(stack, f"{CLUSTER}-{number}").crash()
            seconds.append(took)
            shares.append(most)
    return [
        figure(
            "failover.reowned",
            max(seconds),
            "s",
            f"the slowest of {CRASHES} crashes of one broker of {BROKERS}, with {FULL} bundles; "
            f"the lease is {LEASE_S:.0f} s",
            Bar(Limit.AT_MOST, LEASE_S + 2.0),
            {"s": seconds},
        ),
        figure(
            "failover.most",
            max(shares),
            "bundles",
            f"the most that one broker got; an even share is {FULL / (BROKERS - 1):.1f}",
            raw={"bundles": shares},
        ),
    ]


class _Fleet:
    def __init__(self, stack: Stack, cluster: str) -> None:
        self._stack = stack
        self._cluster = cluster
        bundles = FULL + (BROKERS - 1) * OTHERS
        model = load_model(
            Profile(
                brokers=BROKERS,
                bundles=bundles,
                namespaces=bundles // 16,
                low=0.3,
                high=0.3,
                rate_sigma=0.0,
                cost_sigma=0.0,
            )
        )
        self._outbox = Outbox(partial(kafka_producer, stack.kafka_bootstrap))
        edges = [0, *(FULL + OTHERS * row for row in range(BROKERS))]
        self._agents = [
            self._agent(model, row, model.bundles[edges[row] : edges[row + 1]])
            for row in range(BROKERS)
        ]
        self._lost = model.bundles[:FULL]
        self._dead = model.brokers[0]

    def crash(self) -> tuple[float, float]:
        """Crash a broker; returns the seconds until others own all, and the most that one got."""
        with ExitStack() as running, redis_client(self._stack.redis_url) as client:
            self._outbox.start()
            running.callback(self._outbox.stop)
            for agent in self._agents:
                agent.start()
                running.callback(agent.join, 5.0)
            for agent in self._agents:
                running.callback(agent.stop)
            _until(lambda: all(agent.seeded for agent in self._agents), "the fleet to own")
            # The job must have heard of every record before one of them needs another owner.
            journal = f"trimtab:{{{self._cluster}}}:journal"
            _until(lambda: client.xlen(journal) == 0, "the journal to be relayed")
            time.sleep(2.0)
            self._agents[0].stop()
            self._agents[0].join(5.0)
            began = time.monotonic()
            _until(lambda: all(map(self._served, self._records(client))), "new owners")
            took = time.monotonic() - began
            owners = Counter(record.owner for record in self._records(client))
        return took, float(max(owners.values()))

    def _records(self, client: Redis) -> list[Record]:
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        found: Any = client.hmget(ownership_key(self._cluster), self._lost)
        return [_record.decode(text) for text in found]

    def _served(self, record: Record) -> bool:
        return record.state is State.OWNED and record.owner != self._dead

    def _agent(self, model: LoadModel, row: int, loaded: tuple[str, ...]) -> Agent:
        broker = SimulatedBroker(model, row, loaded, _wall_ms)
        settings = AgentSettings(
            cluster=self._cluster,
            broker=model.brokers[row],
            session=broker.started_ms,
            report_offset=5.0 * row / BROKERS,
            lease=LEASE_S,
        )
        client = redis_client(self._stack.redis_url)
        return Agent(broker, settings, Links.of(settings, client, self._outbox))


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited without result for {what}")
        time.sleep(0.05)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
