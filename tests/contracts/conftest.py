from __future__ import annotations

import pytest
import redis

from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import GENERATION
from tests.support.opening import SureStore, keep_alive, let_in

BROKERS = ("a:8080", "b:8080", "c:8080")


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}".replace(" ", "-")


@pytest.fixture
def store(client: redis.Redis, cluster: str) -> OwnershipStore:
    """Open to GENERATION, with BROKERS alive."""
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, BROKERS)
    return SureStore(client)
