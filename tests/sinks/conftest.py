from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """To be killed, stopped and misconfigured."""
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture
def bootstrap(kafka: KafkaServer) -> str:
    """A Kafka that has every topic."""
    ensure_topics(kafka.bootstrap)
    return kafka.bootstrap
