"""The real services, started once a session and only when a test asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One Kafka for every test: a test names its own topics."""
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for every test: a test names its own cluster."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server
