"""The real services, started once a session and only when a test asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One Kafka for every test: a test names its own topics."""
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for every test: a test names its own cluster.

    Nobody kills it, so it need not wait for the disk, which may stall for longer than a client
    waits.
    """
    with RedisServer(tmp_path_factory.mktemp("redis"), settings=["appendfsync no"]) as server:
        yield server


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """As in production, but for its patience: a test machine may stand still for a second."""
    with redis_client(redis_server.url) as connected:
        connected.connection_pool.connection_kwargs["socket_timeout"] = 30.0
        yield connected
