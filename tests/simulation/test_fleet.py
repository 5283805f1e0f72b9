"""A fleet on real Kafka and Redis claims its bundles, reports, and does what it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
import redis
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import LoadModel, load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from tests.support.opening import let_in
from tests.support.recorded_batches import held
from trimtab.ownership import State
from trimtab.store.requests import BatchId, transitions
from trimtab.wire.keys import LOAD_REPORTS
from trimtab.wire.planned import PlannedMove
from trimtab.wire.reports.decode import decode
from trimtab.wire.rounds import RoundRecord

CLUSTER = "fleet-test"
PROFILE = Profile(brokers=3, bundles=12, namespaces=3)


@pytest.fixture
def model() -> LoadModel:
    return load_model(PROFILE)


@pytest.fixture
def store(client: redis.Redis) -> OwnershipStore:
    let_in(client, CLUSTER, 1)
    return OwnershipStore(client)


@pytest.fixture
def fleet(kafka: KafkaServer, redis_server: RedisServer, model: LoadModel) -> Iterator[Fleet]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    if LOAD_REPORTS not in admin.list_topics(timeout=20).topics:
        admin.create_topics([NewTopic(LOAD_REPORTS, 1)])[LOAD_REPORTS].result(20)
    fleet = Fleet(model, FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5))
    fleet.start()
    yield fleet
    fleet.stop()


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Real processes are waited for, up to a limit."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def moving(bundle: str, source: str, destination: str, epoch: tuple[int, int]) -> RoundRecord:
    move = PlannedMove(
        bundle=bundle, source=source, destination=destination, reason="high-pair", epoch=epoch
    )
    return msgspec.structs.replace(held(CLUSTER), moves=(move,), move_deadline_ms=30_000)


@pytest.mark.e2e
def test_a_fleet_claims_reports_and_obeys(
    fleet: Fleet, store: OwnershipStore, model: LoadModel, kafka: KafkaServer
) -> None:
    assert until(lambda: all(broker.seeded for broker in fleet.snapshot().brokers.values()))
    records = store.records(CLUSTER)
    assert {b: r.owner for b, r in records.items()} == {
        bundle: model.brokers[row] for bundle, row in zip(model.bundles, model.initial, strict=True)
    }

    hottest = max(range(3), key=lambda row: model.usage(model.owned_at_start(row)))
    source, destination = model.brokers[hottest], model.brokers[(hottest + 1) % 3]
    bundle = model.owned_at_start(hottest)[0]
    record = moving(bundle, source, destination, records[bundle].epoch)
    before = fleet.snapshot().brokers
    store.apply_batch(
        CLUSTER, transitions(record, BatchId("q", 1)), generation=1, query_id="q", batch=1
    )
    assert until(lambda: fleet.snapshot().moves == 1)
    after = fleet.snapshot()
    cost = model.cost[model.row[bundle]]
    assert after.brokers[source].usage == pytest.approx(before[source].usage - cost)
    assert after.brokers[destination].usage == pytest.approx(before[destination].usage + cost)
    now = store.record(CLUSTER, bundle)
    assert now is not None
    assert (now.state, now.owner) == (State.OWNED, destination)

    with reader(kafka) as listen:
        assert until(lambda: bundle in listen().get(destination, ()))
        assert until(lambda: set(listen()) == set(model.brokers))


@contextmanager
def reader(kafka: KafkaServer) -> Iterator[Callable[[], dict[str, tuple[str, ...]]]]:
    """What each broker's newest report lists, after one more look at the topic."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": CLUSTER})
    partitions = consumer.list_topics(LOAD_REPORTS, timeout=20).topics[LOAD_REPORTS].partitions
    consumer.assign([TopicPartition(LOAD_REPORTS, partition, 0) for partition in partitions])
    bundles: dict[str, tuple[str, ...]] = {}

    def listen() -> dict[str, tuple[str, ...]]:
        for message in consumer.consume(100, timeout=0.2):
            cluster, broker = (message.key() or b"").decode().split("/")
            if cluster == CLUSTER:
                bundles[broker] = decode(message.value() or b"").bundles
        return bundles

    yield listen
    consumer.close()
