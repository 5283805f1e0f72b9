"""The cost of safety: for a transition (`benchmarks.transition_script`), and for a hand-over.

For the hand-over, eight brokers with real agents on one Redis make a thousand transfers, twenty at
a time. A bundle's gap begins when its source is told to unload, and stops serving. It ends when the
store has accepted that the destination serves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from agent.agent import Agent
from agent.links import Links
from agent.ports import Store
from agent.reports.outbox import Outbox
from agent.settings import AgentSettings
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.transition_script import CLUSTER, script_figures, transfer
from benchmarks.waiting import until
from deploy.redis_server import RedisServer
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from trimtab.ownership import Event
from trimtab.wire.ownership import Record, Transition, TransitionOutcome
from trimtab.wire.reports.load_report import LocalBrokerData

BROKERS: Final = 8
BUNDLES: Final = 200
MOVES: Final = 1000
UNDER_WAY: Final = 20
_PATIENCE_S: Final = 60.0


def measure(folder: Path) -> list[Figure]:
    """Measure both parts, each on a Redis of its own."""
    with RedisServer(folder / "script") as server, redis_client(server.url) as client:
        figures = script_figures(client)
    with RedisServer(folder / "moves") as server:
        gaps = Moves(server.url).gaps()
    return [
        *figures,
        figure(
            "ownership.gap_p50",
            1000 * float(np.percentile(gaps, 50)),
            "ms",
            f"from the source's stop to the destination's start, over {len(gaps)} moves",
            Bar(Limit.AT_MOST, 50.0),
            {"s": gaps},
        ),
        figure(
            "ownership.gap_p99",
            1000 * float(np.percentile(gaps, 99)),
            "ms",
            "the same",
            Bar(Limit.AT_MOST, 250.0),
        ),
    ]


class _Timed:
    """An agent's store; notes when it has accepted that a bundle is served."""

    def __init__(self, real: Store, served: Callable[[str], object]) -> None:
        self._real, self._served = real, served

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        outcome = self._real.apply(cluster, transition, server_ms)
        if transition.event is Event.SERVE and outcome.accepted:
            self._served(transition.bundle)
        return outcome

    def record(self, cluster: str, bundle: str) -> Record | None:
        return self._real.record(cluster, bundle)

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]:
        return self._real.apply_all(cluster, transitions)

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        return self._real.records_of(cluster, broker, besides)


class Bundles:
    """Loads and unloads at once; notes when it was told to unload."""

    def __init__(
        self, loaded: Sequence[str], stopped: Callable[[str], object] = lambda _: None
    ) -> None:
        self._loaded, self._stopped = set(loaded), stopped

    def bundles(self) -> set[str]:
        return self._loaded

    def load_report(self) -> LocalBrokerData:
        return LocalBrokerData(bundles=sorted(self._loaded))

    def prepare(self, bundle: str) -> None:
        pass

    def load(self, bundle: str) -> None:
        self._loaded.add(bundle)

    def unload(self, bundle: str) -> None:
        self._stopped(bundle)
        self._loaded.discard(bundle)

    def topics(self, bundle: str) -> dict[int, Sequence[float]]:  # noqa: ARG002 - it has none
        return {}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        raise NotImplementedError

    def merge(self, parts: Sequence[str], whole: str) -> None:
        raise NotImplementedError


class Moves:
    """A fleet, and a thousand moves between its brokers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._names = [f"broker-{row}:8080" for row in range(BROKERS)]
        self._stops: dict[str, float] = {}
        self._gaps: list[float] = []
        self._idle: list[str] = []
        self._changed = threading.Condition()

    def gaps(self) -> list[float]:
        """Carry out the moves; returns the gap of each in seconds."""
        rng = np.random.default_rng(1)
        step = (1 << 32) // BUNDLES
        bundles = [f"t/n/0x{row * step:08x}_0x{(row + 1) * step:08x}" for row in range(BUNDLES)]
        with redis_client(self._url) as client:
            gate = ClusterGate(client)
            closure = gate.open(CLUSTER, 1)
            if closure is not None:
                gate.open(CLUSTER, 1, closure.history)
            agents = [self._agent(row, bundles[row::BROKERS]) for row in range(BROKERS)]
            try:
                for agent in agents:
                    agent.start()
                until(
                    lambda: all(agent.seeded for agent in agents), "the fleet to own", _PATIENCE_S
                )
                self._idle = list(bundles)
                self._move(OwnershipStore(client), rng)
            finally:
                for agent in agents:
                    agent.stop()
                for agent in agents:
                    agent.join(5.0)
        return self._gaps

    def _move(self, store: OwnershipStore, rng: np.random.Generator) -> None:
        for number in range(MOVES):
            with self._changed:
                free = len(self._idle) > BUNDLES - UNDER_WAY
                if not free and not self._changed.wait_for(self._has_room, _PATIENCE_S):
                    raise RuntimeError("a hand-over does not end")
                bundle = self._idle.pop(int(rng.integers(len(self._idle))))
            record = store.record(CLUSTER, bundle)
            if record is None or record.owner is None:
                raise RuntimeError(f"{bundle} has no owner")
            others = [name for name in self._names if name != record.owner]
            asked = transfer(
                f"m/{number}", bundle, record.owner, others[rng.integers(len(others))], record.epoch
            )
            done = store.apply_batch(CLUSTER, [asked], generation=1, query_id="moves", batch=number)
            if not done.outcomes[0].accepted:
                raise RuntimeError(f"refused: {done.outcomes[0]}")
        until(lambda: len(self._gaps) == MOVES, "the moves", _PATIENCE_S)

    def _has_room(self) -> bool:
        return len(self._idle) > BUNDLES - UNDER_WAY

    def _agent(self, row: int, loaded: Sequence[str]) -> Agent:
        settings = AgentSettings(CLUSTER, self._names[row], 1, report_interval=3600.0)
        links = Links.of(settings, redis_client(self._url), Outbox(no_kafka))
        links = replace(links, store=_Timed(links.store, self._served))
        return Agent(Bundles(loaded, self._stopped), settings, links)

    def _stopped(self, bundle: str) -> None:
        self._stops[bundle] = time.perf_counter()

    def _served(self, bundle: str) -> None:
        now = time.perf_counter()
        with self._changed:
            self._gaps.append(now - self._stops.pop(bundle))
            self._idle.append(bundle)
            self._changed.notify_all()


def no_kafka() -> Any:
    raise RuntimeError("the outbox was not started")
