"""The job in observe-only over real reports, led through its strategies by intents."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from redis import Redis

from deploy import jars
from deploy.stack import Stack
from sinks.publisher import Outgoing, Publisher
from streaming.config import SparkConfig
from streaming.session import spark_session
from tests.e2e import evidence as found
from tests.e2e import pulsar_cluster
from trimtab.wire import keys
from trimtab.wire.control import Intent, Kind
from trimtab.wire.rows import BatchRecord

CLUSTER = "real"
BROKERS = 3

_ROUNDS = 3
"""Of each phase at least."""
_IDLE = 0.01
"""A broker's first CPU value, which stands for a minute, is far below."""

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


def observe(scripts: Path, folder: Path) -> found.Evidence:
    """Run all of it once; raises TimeoutError when something does not come about."""
    with (
        Stack(folder / "run") as stack,
        pulsar_cluster.pulsar_cluster(scripts, BROKERS, folder) as urls,
    ):
        pulsar_cluster.prepare(urls)
        checkpoint = str(folder / "checkpoint")
        with (
            pulsar_cluster.load(scripts, folder),
            _job(stack, checkpoint, folder),
            _poller(stack.kafka_bootstrap, urls, folder),
        ):
            _lead(stack.kafka_bootstrap)
        return _gather(stack, checkpoint)


def _lead(bootstrap: str) -> None:
    """Each phase for some rounds, the first from when all brokers tell their true CPU."""
    listener, publisher = found.Listener(bootstrap), Publisher(bootstrap)
    listener.wait(_awake, 240)
    for version, phase in enumerate(PHASES):
        if phase.settings:
            intent = Intent(
                id=phase.name, kind=Kind.SETTINGS, cluster=CLUSTER, settings=phase.settings
            )
            publisher.publish([Outgoing(keys.CONTROL, CLUSTER, msgspec.json.encode(intent))])
        for _ in range(_ROUNDS):
            last = listener.wait(_of(version), 60)
    # A batch that is followed by another is committed.
    listener.wait(lambda batch: batch.batch > last.batch, 60)


def _awake(batch: BatchRecord) -> bool:
    return any(len(r.usage) == BROKERS and min(r.usage.values()) > _IDLE for r in batch.rounds)


def _of(version: int) -> Callable[[BatchRecord], bool]:
    """Whether a batch holds a round under the settings' version."""
    return lambda batch: any(record.settings_version == version for record in batch.rounds)


def _gather(stack: Stack, checkpoint: str) -> found.Evidence:
    bootstrap = stack.kafka_bootstrap
    batches = found.batches(bootstrap)
    last = max(batch.batch for batch in batches[:-1] if batch.rounds)
    spark = spark_session(SparkConfig(master="local[2]"), "evidence")
    try:
        snapshots = found.snapshots_after(spark, checkpoint, last)
    finally:
        spark.stop()
    with Redis.from_url(stack.redis_url, decode_responses=True) as client:
        redis_keys = set(client.scan_iter("trimtab:*"))
    return found.Evidence(
        reports=found.reports(bootstrap),
        batches=[batch for batch in batches if batch.batch <= last],
        snapshots=snapshots,
        commands=found.count(bootstrap, keys.COMMANDS),
        dead_letters=found.count(bootstrap, keys.DEAD_LETTERS),
        redis_keys=redis_keys,
    )


@contextmanager
def _job(stack: Stack, checkpoint: str, folder: Path) -> Iterator[None]:
    jars.fetch()
    config = folder / "trimtab.toml"
    config.write_text(
        f"""
redis_url = {json.dumps(stack.redis_url)}
checkpoint = {json.dumps(checkpoint)}
metrics_port = 0
kafka.bootstrap = {json.dumps(stack.kafka_bootstrap)}
spark.jars = {json.dumps([str(jar) for jar in jars.connector_jars()])}
intake.sample_interval = 5.0

[settings.round]
observe_only = true
interval = 5.0
shedding = "avg"
placement = "avg"
""",
        "utf-8",
    )
    command = [str(Path(sys.executable).with_name("trimtab-job")), "--config", str(config)]
    with _running(command, folder / "job.log"):
        yield


@contextmanager
def _poller(bootstrap: str, urls: list[str], folder: Path) -> Iterator[None]:
    options = ["--kafka", bootstrap, "--cluster", CLUSTER, "--every", "2"]
    command = [sys.executable, "-m", "tests.e2e.poll_reports", *options, *urls]
    with _running(command, folder / "poller.log"):
        yield


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
