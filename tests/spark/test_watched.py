"""A running stack exports what the catalogue names, and the boards show it from Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import msgspec
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from agent.main import IdleBroker
from agent.metrics import AgentMetrics
from agent.reports.host import HostSampler
from agent.running import running as run_agent
from agent.settings import AgentSettings
from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from deploy.dashboards.boards import BOARDS
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.server.connections import redis_client
from streaming.config import load_config
from tests.support.jobs import QUICK, write_settings
from tests.support.opening import let_in
from tests.support.prometheus import Prometheus, needs_prometheus, promtool
from tests.support.running import PATIENCE, Running
from tests.support.waiting import eventually
from trimtab.metrics import CATALOGUE
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    needs_prometheus,
]

ROOT: Final = Path(__file__).parents[2]
CLUSTER = "watched"
FLEET = Profile(brokers=4, bundles=24, namespaces=2, low=0.1, high=0.8, noise=0.0, seed=5)
SETTINGS = {
    **QUICK,
    "shadow.shedding": "threshold",
    "shadow.placement": "least-long-term-rate",
    "ledger.settle": 2.0,
}

EVENTS: Final = {
    "trimtab_breaker_trips": "streaming/test_exposition.py::test_a_round_shows_what_came_of_moves_"
    "and_the_breaker",
    "trimtab_busy_topic_bytes": "golden/test_busy_topics.py",
    "trimtab_dropped_samples": "streaming/test_exposition.py::test_label_values_from_the_network_"
    "cannot_fill_the_memory_of_prometheus",
    "trimtab_excluded_bundles": "streaming/test_what_a_round_shows.py",
    "trimtab_fenced_writes": "streaming/test_leadership.py",
    "trimtab_ignored_records": "streaming/test_ignored_records.py",
    "trimtab_implausible_reports": "streaming/test_exposition.py::test_a_report_that_is_not_"
    "believed_is_counted_by_cluster_and_field",
    "trimtab_merges": "streaming/test_exposition.py::test_merges_are_counted_by_what_became_of_"
    "them",
    "trimtab_pruned_records": "streaming/test_pruning.py",
    "trimtab_refilled_bundles": "streaming/test_relay.py",
    "trimtab_refused_wishes": "streaming/test_what_a_round_shows.py",
    "trimtab_relay_failures": "streaming/test_relay.py",
    "trimtab_repeated_batches": "streaming/test_batch.py",
    "trimtab_repairs": "streaming/test_exposition.py::test_repairs_are_counted_by_event_"
    "and_outcome",
    "trimtab_restored_records": "streaming/test_rebuilding.py",
    "trimtab_sink_waits": "streaming/test_batch.py",
    "trimtab_skipped_clusters": "streaming/test_batch.py",
    "trimtab_splits": "spark/together/test_splits.py",
    "trimtab_unexplained_rounds": "streaming/test_explanations.py",
    "pulsar_lb_bundles_split": "streaming/test_what_a_round_shows.py",
    "pulsar_lb_bundles_split_breakdown": "streaming/test_what_a_round_shows.py",
}
"""Metrics that have a sample only after an event, each with the test that causes it."""


class MonitoredBroker(IdleBroker):
    """Has a heartbeat bundle, as Pulsar's brokers do: every round excludes it."""

    def load_report(self) -> LocalBrokerData:
        report = super().load_report()
        held = [*self.bundles(), f"pulsar/{CLUSTER}/{self._broker}/0x00000000_0xffffffff"]
        report.bundles = held
        report.last_stats = {bundle: BundleStats(topics=1) for bundle in held}
        return report


def test_every_metric_is_exported_and_every_board_shows_something(
    spark: SparkSession, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url, SETTINGS)
    config, agents = load_config(file), AgentMetrics()
    fleet_settings = FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5)
    fleet = Fleet(load_model(FLEET), fleet_settings, agents)
    running = Running(config, spark)
    began = time.time()
    monitored = MonitoredBroker("monitored:8080", round(1000 * began), HostSampler(10.0))
    alone = AgentSettings(CLUSTER, "monitored:8080", monitored.started_ms, report_interval=0.5)
    with redis_client(redis_server.url) as client, ControlPlane(config) as plane, running:
        let_in(client, CLUSTER, 1)
        app = create_app(Context(plane, CLUSTER, patience_s=0.0))
        job_port = running.shown.serve("127.0.0.1", 0).server_port
        agents_port = agents.shown.serve("127.0.0.1", 0).server_port
        with (
            served(app) as api_port,
            Prometheus(
                tmp_path,
                {
                    "127.0.0.1:9780": f"127.0.0.1:{job_port}",
                    "127.0.0.1:9781": f"127.0.0.1:{api_port}",
                    "127.0.0.1:9782": f"127.0.0.1:{agents_port}",
                },
            ) as prometheus,
            run_agent(monitored, alone, kafka.bootstrap, redis_server.url),
        ):
            fleet.start()
            try:
                running.await_metric(
                    1, "trimtab_finished_moves_total", cluster=CLUSTER, outcome="landed"
                )
                running.await_metric(1, "trimtab_prediction_error_ratio_count", cluster=CLUSTER)
                send_nonsense(kafka)
                running.await_metric(1, "trimtab_intent_outcomes_total", cluster=CLUSTER)
                texts = {
                    "job": running.shown.text().decode(),
                    "api": ask(app),
                    "agents": scrape(agents_port),
                }
                exports_the_catalogue(texts)
                for name, text in texts.items():
                    follows_the_conventions(name, text)
                shows_something(prometheus, began)
                running.pause(CLUSTER)
                running.await_rest(client, CLUSTER)
            finally:
                fleet.stop()


@contextmanager
def served(app: FastAPI) -> Iterator[int]:
    """The application on a port, as `trimtab api` serves it."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def send_nonsense(kafka: KafkaServer) -> None:
    """Send a report that is not one, and an intent that breaks a rule."""
    wrong = Intent(
        id="wrong", kind=IntentKind.SETTINGS, cluster=CLUSTER, settings={"round.max_moves": -1}
    )
    Publisher(kafka.bootstrap).publish(
        [
            Outgoing(keys.LOAD_REPORTS, f"{CLUSTER}/a:1", b"{"),
            Outgoing(keys.CONTROL, CLUSTER, msgspec.json.encode(wrong)),
        ]
    )


def ask(app: FastAPI) -> str:
    """What the API exports after a request that became an intent."""
    with TestClient(app) as client:
        client.put("/admin/v2/namespaces/t/made-up", json={"bundles": {"numBundles": 2}})
        client.get("/no/such/path")
        return client.get("/metrics").text


def scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def exports_the_catalogue(texts: dict[str, str]) -> None:
    """Every metric has a sample, or needs an event that another test brings."""
    sampled = {
        family.name
        for text in texts.values()
        for family in text_string_to_metric_families(text)
        if family.samples
    }
    missing = {metric.name for metric in CATALOGUE} - sampled - EVENTS.keys()
    assert sorted(missing) == []


def follows_the_conventions(name: str, text: str) -> None:
    """Pulsar's names are as they are."""
    ours = "".join(f"{line}\n" for line in text.splitlines() if "pulsar_lb_" not in line)
    found = promtool("check", "metrics", text=ours.encode())
    assert (found.returncode, found.stderr.decode()) == (0, ""), name


def shows_something(prometheus: Prometheus, began: float) -> None:
    """No query of a board comes back empty, and every alert's expression can be evaluated."""
    for board in BOARDS:
        for query in board.queries:
            expr = query.expr.replace("$cluster", CLUSTER).replace("$__rate_interval", "1m")
            look = partial(prometheus.has, expr, began)
            eventually(look, f"{board.uid}: {expr}", 60.0, 1.0)
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    eventually(lambda: {rule["health"] for rule in rules} != {"unknown"}, "rules", 60.0, 1.0)
    assert [rule["name"] for rule in rules if rule["health"] == "err"] == []


def test_a_metric_that_needs_an_event_is_looked_at_by_the_test_that_brings_it() -> None:
    assert EVENTS.keys() <= {metric.name for metric in CATALOGUE}
    for name, place in EVENTS.items():
        file, _, test = place.partition("::")
        text = (ROOT / "tests" / file).read_text("utf-8")
        assert name in text, place
        assert not test or f"def {test}(" in text, place
