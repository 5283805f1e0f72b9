"""An API on real Kafka and Redis: a cluster whose rounds are recorded, and no job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from redis import Redis

from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Publisher
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B, Job
from tests.support.recorded_batches import held
from trimtab.cluster.job_settings import to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.ownership import Event
from trimtab.policies import Isolation, Policies
from trimtab.shedding import DEFAULTS
from trimtab.wire.command import CommandKind
from trimtab.wire.rounds import BatchRecord

CLUSTER = "served"
EDGES = (0, 0x40000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
BUNDLES = [f"t/n/0x{low:08x}_0x{high:08x}" for low, high in pairwise(EDGES)]
POLICIES = Policies(
    isolation={"vip": Isolation(("t/vip",), ("a",))}, groups={"t/n": "G"}, domains={A: "north"}
)


@pytest.fixture(scope="session")
def plane(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[ControlPlane]:
    """Two brokers that own a namespace's four bundles by turns; one setting is changed."""
    ensure_topics(kafka.bootstrap)
    client = Redis.from_url(redis_server.url, protocol=2)
    job = Job(client, CLUSTER)
    for number, bundle in enumerate(BUNDLES):
        to = (A, B)[number % 2]
        job.ask(Event.ASSIGN, to, {to: CommandKind.OWN}, bundle=bundle)
    client.close()
    record = msgspec.structs.replace(
        held(CLUSTER),
        at=2**42,
        usage={A: 0.4, B: 0.2},
        smoothed_usage={},
        gone=(),
        draining=(),
        held_back=(),
        overrides={"threshold.threshold": 0.15},
        policies=POLICIES,
    )
    batch = BatchRecord(
        query=CLUSTER,
        batch=1,
        generation=1,
        at=2**42,
        offsets={},
        rounds=(record,),
        settings=to_record(IntakeSettings(), DEFAULTS),
    )
    Publisher(kafka.bootstrap).publish(list(batch_records(batch)))
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    with ControlPlane(settings) as connected:
        yield connected


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[TestClient]:
    """Waits for no outcome."""
    with TestClient(create_app(Context(plane, CLUSTER, patience_s=0.0))) as client:
        yield client
