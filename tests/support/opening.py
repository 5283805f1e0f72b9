"""A cluster that is open and brokers that are alive, as tests want them."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from sinks.gate import Gate
from trimtab.wire.keys import lease_key

LONG_MS = 600_000


def let_in(client: redis.Redis, cluster: str, generation: int) -> Gate:
    """Open a cluster to a generation without waiting for anybody."""
    gate = Gate(client)
    closure = gate.open(cluster, generation)
    if closure is not None:
        assert gate.open(cluster, generation, closure.run) is None
    return gate


def keep_alive(client: redis.Redis, cluster: str, brokers: Iterable[str]) -> None:
    """Give brokers that have none leases that outlive the test."""
    for broker in brokers:
        client.set(lease_key(cluster, broker), "1", px=LONG_MS, nx=True)
