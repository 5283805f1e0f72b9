"""The job in observe-only over real reports, led through its strategies by intents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from deploy import jars
from deploy.process import Process
from deploy.stack import Stack
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.server.connections import redis_client
from streaming.config import SparkConfig, load_config
from streaming.query.session import spark_session
from tests.e2e import pulsar_cluster
from tests.e2e.evidence import Evidence, gather
from tests.support.jobs import Driver
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.rounds import RoundRecord

CLUSTER = "real"
BROKERS = 3

_ROUNDS = 3
"""Of each phase at least."""
_PATIENCE = 240.0
_IDLE = 0.01

_PULSAR = "org.apache.pulsar.broker.loadbalance.impl."


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the run: what an intent changes, and who is asked then."""

    name: str
    shedding: str
    placement: str
    settings: dict[str, str | int | float | bool] = field(default_factory=dict)


PHASES = (
    Phase("avg", "avg", "avg"),
    Phase(
        "threshold",
        "threshold",
        "least-resource-usage",
        {
            "loadBalancerLoadSheddingStrategy": f"{_PULSAR}ThresholdShedder",
            "loadBalancerLoadPlacementStrategy": f"{_PULSAR}LeastResourceUsageWithWeight",
        },
    ),
    Phase(
        "any gap",
        "threshold",
        "least-resource-usage",
        {"threshold.threshold": 0.0, "threshold.min_throughput": 0.0},
    ),
)
"""The settings' version in a phase is its place here."""


@contextmanager
def observe(scripts: Path, folder: Path) -> Iterator[Evidence]:
    """Run all of it once."""
    jars.fetch()
    with Stack(folder / "services") as stack, ExitStack() as later:
        topics = later.enter_context(closing(RecordedTopics(stack.kafka_bootstrap)))
        settings = _write_settings(folder, stack)
        driver = Driver(folder, settings)
        with pulsar_cluster.running(scripts, BROKERS, folder) as urls, ExitStack() as running:
            pulsar_cluster.prepare(urls)
            running.enter_context(pulsar_cluster.load(scripts, folder))
            running.callback(driver.stop)
            driver.start()
            running.enter_context(_polled(stack.kafka_bootstrap, urls, folder))
            _lead(topics, Publisher(stack.kafka_bootstrap), driver)
        spark = spark_session(SparkConfig(master="local[2]"), "evidence")
        later.callback(spark.stop)
        config, client = load_config(settings), redis_client(stack.redis_url)
        yield gather(topics, config, client, spark, driver.committed())


def _lead(topics: RecordedTopics, publisher: Publisher, driver: Driver) -> None:
    """Each phase for some rounds in which all brokers tell their true CPU."""
    for version, phase in enumerate(PHASES):
        if phase.settings:
            intent = Intent(
                id=phase.name, kind=IntentKind.SETTINGS, cluster=CLUSTER, settings=phase.settings
            )
            publisher.publish([Outgoing(keys.CONTROL, CLUSTER, msgspec.json.encode(intent))])
        eventually(partial(_seen, topics, version), phase.name, _PATIENCE, pause=1.0)
    # What has been recorded is committed once another batch is.
    driver.await_batches(1)


def _seen(topics: RecordedTopics, version: int) -> bool:
    """Whether enough rounds were held under the settings' version."""
    rounds = [record for batch in topics.batches() for record in batch.rounds]
    return sum(r.settings_version == version and awake(r) for r in rounds) >= _ROUNDS


def awake(record: RoundRecord) -> bool:
    """Whether every broker told its true CPU: the first value, which stands a minute, is none."""
    return len(record.usage) == BROKERS and min(record.usage.values()) > _IDLE


def _write_settings(folder: Path, stack: Stack) -> Path:
    file = folder / "trimtab.toml"
    file.write_text(
        f"""
redis_url = {json.dumps(stack.redis_url)}
checkpoint = {json.dumps(str(folder / "checkpoint"))}
metrics_port = 0
kafka.bootstrap = {json.dumps(stack.kafka_bootstrap)}
spark.jars = {json.dumps([str(jar) for jar in jars.connector_jars()])}
intake.sample_interval = 5.0

[settings.round]
observe_only = true
interval = 5.0
shedding = "avg"
placement = "avg"
"""
    )
    return file


@contextmanager
def _polled(bootstrap: str, urls: list[str], folder: Path) -> Iterator[None]:
    options = ["--kafka", bootstrap, "--cluster", CLUSTER, "--every", "2"]
    command = [sys.executable, "-m", "tests.e2e.poll_reports", *options, *urls]
    root = Path(__file__).parents[2]
    poller = Process("the poller", command, folder=root, log=folder / "poller.log")
    poller.start(lambda: poller.running, 10.0)
    try:
        yield
    finally:
        poller.stop()
