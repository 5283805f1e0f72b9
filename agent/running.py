"""Runs an agent for the duration of a block, and a process until it is told to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from agent.agent import Agent
from agent.broker import Broker
from agent.links import Links
from agent.metrics import AgentMetrics
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.settings import AgentSettings
from sinks.kafka.security import security_of_environment
from sinks.redis.server.connections import redis_client
from sinks.redis.server.survey import check_mode


@contextmanager
def running(  # noqa: PLR0913 - its broker, its servers, and how it ends and is shown
    broker: Broker,
    settings: AgentSettings,
    kafka: str,
    redis: str,
    drain_s: float = 0.0,
    *,
    metrics: AgentMetrics | None = None,
) -> Iterator[Agent]:
    """Start the broker's agent; ``kafka`` are bootstrap servers, ``redis`` is a URL. ``metrics``
    shows it to Prometheus; without, it is shown nowhere.

    Neither needs to be up yet. Kafka's TLS and SASL settings come from the environment, as for the
    job. Raises Misconfigured and `agent.ownership.seen.Unusable` before anything is started.
    """
    outbox = Outbox(partial(kafka_producer, kafka, security_of_environment()))
    client = redis_client(redis)
    check_mode(client)
    links = Links.of(settings, client, outbox)
    metrics = metrics or AgentMetrics()
    agent = Agent(broker, settings, links, partial(metrics.note_handover, settings.cluster))
    metrics.add(settings.cluster, settings.broker, agent)
    metrics.count_reports(outbox)
    outbox.start()
    agent.start()
    try:
        yield agent
    finally:
        agent.stop(drain_s)
        agent.join(drain_s + 5.0)
        outbox.stop()
        links.seen.close()


def wait_for_the_end(agent: Agent) -> None:
    """Wait until SIGTERM or Ctrl-C, or until the agent ends by itself; only in the main thread."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while agent.alive and not stopped.wait(1.0):
        pass
