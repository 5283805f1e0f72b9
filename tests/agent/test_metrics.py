"""What an agent shows to Prometheus, if its process asks for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry
from redis import Redis

from agent.metrics import AgentMetrics
from sinks.redis.migrations import Migrations
from tests.agent.support import BUNDLE, A, B, Job
from tests.agent.turned_by_hand import Host
from tests.support.migrating_broker import MigratingBroker, Storage
from tests.support.migrations import GREEN
from trimtab.migration.migration import Migration
from trimtab.wire.reports.load_report import Resource


@pytest.fixture
def registry() -> CollectorRegistry:
    """An embedding broker's own."""
    return CollectorRegistry()


def shows(registry: CollectorRegistry, one: Host, cluster: str, name: str) -> AgentMetrics:
    metrics = AgentMetrics(registry)
    metrics.add(cluster, name, one.agent)
    metrics.count_reports(one.outbox)
    return metrics


def test_lease_bundles_commands_and_reports_are_read_at_the_scrape(
    job: Job, host: Callable[..., Host], registry: CollectorRegistry
) -> None:
    source, destination = host(A, BUNDLE), host(B)
    metrics = shows(registry, destination, job.cluster, B)
    of = {"cluster": job.cluster, "broker": B}

    def value(name: str, **more: str) -> float | None:
        return registry.get_sample_value(name, {**of, **more})

    assert value("trimtab_agent_lease_remaining_seconds") == 0
    assert value("trimtab_agent_seeded") == 0
    for one in (source, destination):
        one.agent.turn()
    job.transfer(A, B)
    for one in (destination, source, destination):
        one.agent.turn()
    assert value("trimtab_agent_lease_remaining_seconds") == pytest.approx(9.0)
    assert value("trimtab_agent_lease_lapses_total") == 1
    assert value("trimtab_agent_seeded") == 1
    assert value("trimtab_agent_served_bundles") == 1
    assert value("trimtab_agent_commands_total", kind="own", outcome="done") == 1
    destination.clock.advance(3.0)
    assert value("trimtab_agent_report_age_seconds") == 3.0
    destination.clock.advance(7.0)
    assert value("trimtab_agent_lease_remaining_seconds") == 0
    assert value("trimtab_agent_served_bundles") == 0
    assert b"trimtab_agent_seeded{" in metrics.shown.text()
    outcome = {"outcome": "delivered"}
    assert registry.get_sample_value("trimtab_agent_reports_total", outcome) == 0


def test_steps_of_topics_that_migrate_are_counted_by_kind_and_result(
    job: Job, client: Redis, host: Callable[..., Host], registry: CollectorRegistry
) -> None:
    storage = Storage()
    storage.topic("persistent://t/ns/one")
    broker = MigratingBroker(storage, BUNDLE)
    one = host(A, BUNDLE, broker=broker)
    shows(registry, one, job.cluster, A)

    def steps(step: str, result: str) -> float | None:
        labels = {"cluster": job.cluster, "broker": A, "step": step, "result": result}
        return registry.get_sample_value("trimtab_agent_migration_steps_total", labels)

    one.agent.turn()
    assert (steps("begin", "done"), steps("begin", "failed"), steps("rest", "done")) == (0, 0, None)
    Migrations(client).write(job.cluster, 1, [Migration("m", job.cluster, "t/ns", GREEN)])
    broker.failing = ["create"]
    for _ in range(2):
        one.agent.turn()
    assert (steps("begin", "done"), steps("begin", "failed")) == (0, 1)
    for _ in range(2):
        one.clock.advance(1.0)
        one.agent.turn()
    assert (steps("begin", "done"), steps("begin", "failed")) == (1, 1)
    assert (steps("drain", "done"), steps("take-back", "done")) == (1, 0)


def test_a_hand_over_is_timed_by_the_new_owner(job: Job, host: Callable[..., Host]) -> None:
    noted: list[float] = []
    source, destination = host(A, BUNDLE), host(B, handed_over=noted.append)
    for one in (source, destination):
        one.agent.turn()
    job.transfer(A, B)
    for one in (destination, source):
        one.agent.turn()
    assert noted == []
    destination.agent.turn()
    [seconds] = noted
    assert 0 <= seconds < 60


@pytest.mark.usefixtures("job")
def test_pulsars_series_are_the_brokers_own_figures(
    cluster: str, host: Callable[..., Host], registry: CollectorRegistry
) -> None:
    one = host(A)
    shows(registry, one, cluster, A)
    one.agent.turn()
    assert one.agent.load is not None
    one.agent.load.cpu = Resource(3.0, 4.0)
    one.agent.load.bandwidth_in = Resource(-1.0, -1.0)
    of = {"cluster": cluster, "broker": A, "metric": "loadBalancing"}
    assert registry.get_sample_value("pulsar_lb_cpu_usage", of) == 75.0
    assert registry.get_sample_value("pulsar_lb_bandwidth_in_usage", of) is None
