"""From an operator's intent to its effect at the broker, on an idle stack, in triggers of the job.

Three brokers with real agents and a namespace of a dozen bundles, without any load; the job has its
default trigger. A hundred times, at uneven moments, one bundle is asked to be moved to a broker.
The time runs from just before the intent is sent to Kafka, as the API sends it, until that broker
has loaded the bundle. Kafka, Redis, the job and the agents share the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import SecretStr

from agent.links import AgentSettings
from agent.running import running
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.job import JobProcess
from benchmarks.ownership import Bundles
from benchmarks.waiting import until
from control.intents import new_intent
from control.plane import ControlPlane
from deploy.stack import Stack
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from trimtab.model import FULL_RANGE_END
from trimtab.wire.control import IntentKind
from trimtab.wire.load_report import LocalBrokerData, Resource

CLUSTER: Final = "bench"
NAMESPACE: Final = "t/idle"
BROKERS: Final = tuple(f"127.0.0.1:{port}" for port in (9001, 9002, 9003))
BUNDLES: Final = 12
INTENTS: Final = 100
TRIGGER_S: Final = JobConfig.model_fields["trigger_seconds"].default
MOST_TRIGGERS: Final = 3.0
SETTINGS: Final = "[settings.round]\ninterval = 10.0\n"
"""The first round comes soon; what an intent asks for does not wait for one."""
_PATIENCE_S: Final = 240.0


class _Broker(Bundles):
    """Says when it has loaded a bundle; a tenth of its processor is used."""

    def __init__(self, loaded: Callable[[str], object]) -> None:
        super().__init__(())
        self._tell = loaded

    def load_report(self) -> LocalBrokerData:
        return LocalBrokerData(cpu=Resource(10.0, 100.0), bundles=sorted(self.bundles()))

    def load(self, bundle: str) -> None:
        super().load(bundle)
        self._tell(bundle)


class _Arrivals:
    """When bundles were loaded last, by time.monotonic."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, str], float] = {}
        self._changed = threading.Condition()

    def note(self, broker: str, bundle: str) -> None:
        with self._changed:
            self.at[broker, bundle] = time.monotonic()
            self._changed.notify_all()

    def wait(self, broker: str, bundle: str, since: float) -> float:
        """Seconds from ``since`` until the broker has loaded the bundle."""
        with self._changed:
            come = self._changed.wait_for(
                lambda: self.at.get((broker, bundle), 0.0) > since, _PATIENCE_S
            )
            if not come:
                raise RuntimeError(f"{broker} has not got {bundle} in {_PATIENCE_S:.0f} s")
            return self.at[broker, bundle] - since


def measure(folder: Path) -> list[Figure]:
    """Move one bundle after another."""
    arrivals = _Arrivals()
    with ExitStack() as started:
        stack = started.enter_context(Stack(folder / "run"))
        ensure_topics(stack.kafka_bootstrap)
        started.enter_context(JobProcess(stack, folder / "job", SETTINGS, TRIGGER_S))
        for name in BROKERS:
            broker = _Broker(partial(arrivals.note, name))
            settings = AgentSettings(CLUSTER, name, 1, report_interval=1.0)
            addresses = stack.kafka_bootstrap, stack.redis_url
            started.enter_context(running(broker, settings, *addresses))
        config = JobConfig(
            kafka=KafkaConfig(bootstrap=stack.kafka_bootstrap),
            redis_url=SecretStr(stack.redis_url),
        )
        plane = started.enter_context(ControlPlane(config))
        waits = list(_moves(plane, arrivals))
    return _figures([wait / TRIGGER_S for wait in waits])


def _moves(plane: ControlPlane, arrivals: _Arrivals) -> Iterator[float]:
    """Seconds until each of INTENTS moves has its effect."""
    until(lambda: _sees_all(plane), "a round with all brokers", _PATIENCE_S)
    owners = _create(plane)
    names, rng = sorted(owners), np.random.default_rng(1)
    for number in range(INTENTS):
        bundle = names[number % len(names)]
        to = BROKERS[(BROKERS.index(owners[bundle]) + 1) % len(BROKERS)]
        # At any moment of a batch alike.
        time.sleep(TRIGGER_S * float(rng.random()))
        intent = new_intent(IntentKind.UNLOAD, CLUSTER, bundle=bundle, broker=to)
        since = time.monotonic()
        plane.send(intent)
        yield arrivals.wait(to, bundle, since)
        owners[bundle] = to
        until(lambda: _is_done(plane, intent.id), "the outcome", _PATIENCE_S)  # noqa: B023


def _sees_all(plane: ControlPlane) -> bool:
    last = plane.clusters().get(CLUSTER)
    return last is not None and {*BROKERS} <= last.newest.usage.keys()


def _create(plane: ControlPlane) -> dict[str, str]:
    """Create the namespace; the owner of each bundle."""
    cuts = tuple(FULL_RANGE_END * part // BUNDLES for part in range(1, BUNDLES))
    made = new_intent(IntentKind.NAMESPACE, CLUSTER, name=NAMESPACE, positions=cuts)
    plane.send(made)
    until(lambda: _is_done(plane, made.id), "the namespace", _PATIENCE_S)
    records = plane.records(CLUSTER, NAMESPACE)
    return {bundle: str(record.owner) for bundle, record in records.items()}


def _is_done(plane: ControlPlane, intent: str) -> bool:
    found = plane.outcome(CLUSTER, intent)
    return found is not None and found.final


def _figures(triggers: list[float]) -> list[Figure]:
    says = f"triggers of {TRIGGER_S:g} s until a broker has what an intent moves to it"
    return [
        figure(
            "intents.effect_p50",
            float(np.percentile(triggers, 50)),
            "",
            f"{says}, of {len(triggers)} intents",
            raw={"triggers": triggers},
        ),
        figure(
            "intents.effect_p99",
            float(np.percentile(triggers, 99)),
            "",
            says,
            Bar(Limit.AT_MOST, MOST_TRIGGERS),
        ),
    ]
