"""A cluster that is open and brokers that are alive, as tests want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis

from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import BatchOutcome, OwnershipStore
from sinks.redis.server.survey import history_of
from trimtab.wire.keys import MARK, bundles_key, lease_key, open_key, sessions_key
from trimtab.wire.ownership import Transition, TransitionOutcome

LONG_MS = 600_000


def let_in(client: redis.Redis, cluster: str, generation: int) -> ClusterGate:
    """Open a cluster to a generation without waiting for anybody, as if a job had been here before:
    a store that remembers nothing stays closed for a lease and more."""
    gate = ClusterGate(client)
    closure = gate.open(cluster, generation)
    if closure is not None:
        assert gate.open(cluster, generation, closure.history) is None
    return gate


def keep_alive(client: redis.Redis, cluster: str, brokers: Iterable[str]) -> None:
    """Give brokers that have none leases that outlive the test."""
    for broker in brokers:
        client.set(lease_key(cluster, broker), "+1", px=LONG_MS, nx=True)


def indexed(client: redis.Redis, cluster: str) -> list[str]:
    """The bundles in the index, in its order."""
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    names: Any = client.zrange(bundles_key(cluster), 0, -1)
    return [name.decode() for name in names if name != MARK.encode()]


def let_lapse(client: redis.Redis, cluster: str, broker: str) -> None:
    """End a broker's lease as if its time were over."""
    client.delete(lease_key(cluster, broker))
    # Any: as above.
    noted: Any = client.hget(sessions_key(cluster), broker)
    if noted is not None:
        client.hset(sessions_key(cluster), broker, f"{noted.decode().split()[0]} 1")


@contextmanager
def evicting(client: redis.Redis, maxmemory: str, policy: str) -> Iterator[None]:
    """Limit the server's memory meanwhile."""
    try:
        client.config_set("maxmemory", maxmemory)
        client.config_set("maxmemory-policy", policy)
        yield
    finally:
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")


def server_ms(client: redis.Redis) -> int:
    """The server's clock, as a caller that has watched it for long knows it."""
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    clock: Any = client.time()
    return int(clock[0] * 1000 + clock[1] // 1000)


class SureStore(OwnershipStore):
    """One whose caller always knows the server's time."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client)
        self._server = client

    def apply_batch(  # noqa: PLR0913 - as what it overrides
        self,
        cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
        server_ms: int | None = None,
    ) -> BatchOutcome:
        return super().apply_batch(
            cluster,
            transitions,
            generation=generation,
            query_id=query_id,
            batch=batch,
            server_ms=server_ms or _now(self._server),
        )

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition], server_ms: int | None = None
    ) -> tuple[TransitionOutcome, ...]:
        return super().apply_all(cluster, transitions, server_ms or _now(self._server))


_now = server_ms


def close(client: redis.Redis, cluster: str) -> str:
    """As a restart of the server does; the history that its data has now."""
    client.hset(open_key(cluster), "replid", "0" * 40)
    now = history_of(client.info("replication"))
    assert now is not None
    return now.decode()
