"""One Redis for all, a cluster for each test."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest
from redis import Redis

from tests.agent.support import A, B, Job, Site
from tests.agent.turned_by_hand import Host


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    return f"agent-{crc32(request.node.nodeid.encode()):08x}"


@pytest.fixture
def job(client: Redis, cluster: str) -> Job:
    """A job that has opened the store."""
    return Job(client, cluster)


@pytest.fixture
def a(client: Redis, cluster: str) -> Site:
    return Site(client, cluster, A)


@pytest.fixture
def b(client: Redis, cluster: str) -> Site:
    return Site(client, cluster, B)


@pytest.fixture
def host(client: Redis, cluster: str) -> Callable[..., Host]:
    return lambda name, *loaded, **more: Host(
        more.pop("client", client), cluster, name, *loaded, **more
    )
