"""Exports the agents of a process to Prometheus, if the process asks for it.

An agent costs nothing between scrapes: its state is read when Prometheus asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent.agent import Agent
from agent.reports.outbox import Outbox
from sinks.exposition import Exposition
from trimtab.load import percentages
from trimtab.metrics import agent as metrics
from trimtab.metrics import pulsar
from trimtab.metrics.metric import Metric as Described
from trimtab.metrics.metric import MetricKind
from trimtab.migration.steps import Step
from trimtab.wire.reports.load_report import LocalBrokerData

_OBSERVED: Final = (metrics.HANDOVER,)
"""What is noted as it happens."""

_READ: Final = tuple(
    metric for metric in (*metrics.METRICS, *pulsar.OF_AGENT) if metric not in _OBSERVED
)

_STEPS: Final = tuple(step for step in Step if step is not Step.REST)

Sample = tuple[Described, tuple[str, ...], float]


class AgentMetrics(Collector):
    """The metrics of a process's agents, in ``registry``: an embedding broker's own, or a new one.
    Make one of it for each registry, and give it to each agent of the process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.shown = Exposition(_OBSERVED, registry)
        self._agents: dict[tuple[str, str], Agent] = {}
        self._outboxes: list[Outbox] = []
        self.shown.add(self)

    def note_handover(self, cluster: str, seconds: float) -> None:
        """Note how long a bundle waited for this process's broker to serve it."""
        self.shown.observe(metrics.HANDOVER, seconds, cluster)

    def add(self, cluster: str, broker: str, agent: Agent) -> None:
        """Show an agent from now on, instead of an earlier one of the same broker."""
        self._agents[cluster, broker] = agent

    def count_reports(self, outbox: Outbox) -> None:
        """Show how many reports of an outbox were sent, replaced or lost."""
        self._outboxes.append(outbox)

    def collect(self) -> Iterable[Metric]:
        """The present values, for prometheus-client."""
        families = {metric: _family(metric) for metric in _READ}
        for metric, labels, value in self._samples():
            families[metric].add_metric(labels, value)
        return families.values()

    def _samples(self) -> Iterator[Sample]:
        for labels, agent in self._agents.copy().items():
            yield from _read(agent, labels)
        counts = [outbox.counts() for outbox in self._outboxes]
        for outcome in ("delivered", "superseded", "failed"):
            yield metrics.REPORTS, (outcome,), sum(getattr(each, outcome) for each in counts)


def _read(agent: Agent, labels: tuple[str, str]) -> Iterator[Sample]:
    status = agent.status()
    yield metrics.LEASE, labels, status.lease_left_s
    yield metrics.LAPSES, labels, status.lapses
    yield metrics.SEEDED, labels, status.seeded
    yield metrics.SERVED, labels, status.served
    yield metrics.REPORT_AGE, labels, status.load_age_s
    for (kind, outcome), number in agent.obeyed().items():
        yield metrics.COMMANDS, (*labels, kind.value, outcome.value), number
    steps = agent.migrated()
    # Each from the start: a rate needs the 0 before the first failure.
    for step, done in product(_STEPS, (True, False)):
        result = "done" if done else "failed"
        yield metrics.MIGRATION_STEPS, (*labels, step.value, result), steps.get((step, done), 0)
    if agent.load is not None:
        yield from _read_load(agent.load, labels)


def _read_load(load: LocalBrokerData, labels: tuple[str, str]) -> Iterator[Sample]:
    resources = (
        load.cpu,
        load.memory,
        load.direct_memory,
        load.bandwidth_in,
        load.bandwidth_out,
    )
    percent = percentages(
        np.array([each.usage for each in resources]), np.array([each.limit for each in resources])
    )
    for metric, resource, value in zip(pulsar.OF_AGENT, resources, percent.tolist(), strict=True):
        # A resource that the broker cannot read has no limit, and no percentage.
        if resource.limit > 0:
            yield metric, (*labels, pulsar.LOAD_BALANCING), value


def _family(metric: Described) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)
