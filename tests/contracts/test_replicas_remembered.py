"""How many replicas a master must hear, by what is known of those on the histories before.

The server of these tests has no replicas, and was one until it became a master; what its data
remember is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.errors import Isolated, StoreUnavailable
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.leases import Leases
from sinks.redis.server.connections import redis_client
from trimtab.ownership import REPLICA_WAIT_MS
from trimtab.wire import keys

BEFORE = "0" * 40
"""The history of the old master."""
CLOSED_MS = 20_000


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Not the one of all tests, whose clusters would be closed by its promotion."""
    with RedisServer(tmp_path_factory.mktemp("promoted"), settings=["appendfsync no"]) as server:
        with redis_client(server.url) as connected:
            connected.replicaof("127.0.0.1", "1")
            connected.replicaof("NO", "ONE")
        yield server


@pytest.fixture
def gate(client: redis.Redis) -> ClusterGate:
    return ClusterGate(client)


def promoted(client: redis.Redis, cluster: str, opened: Mapping[str, int], noted: int) -> None:
    """What the job's last look found, and what requests have found since."""
    client.hset(keys.open_key(cluster), mapping={"generation": 5, "replid": BEFORE})
    for name, number in opened.items():
        client.hset(keys.open_key(cluster), name, str(number))
    client.hset(keys.replicas_key(cluster), mapping={"on": BEFORE, "online": noted})


def asked_for(client: redis.Redis, cluster: str) -> int:
    return int(client.hget(keys.open_key(cluster), "replicas") or 0)


def look(gate: ClusterGate, cluster: str, generation: int = 6) -> None:
    """As the job does while it is closed."""
    with suppress(Isolated):
        gate.open(cluster, generation, closed_for_ms=CLOSED_MS)


def test_half_of_those_that_the_last_look_found_are_needed(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    promoted(client, cluster, {"connected": 5, "replicas": 2}, noted=0)
    look(gate, cluster)
    assert asked_for(client, cluster) == 2


def test_those_that_joined_after_the_jobs_last_look_count_too(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    promoted(client, cluster, {"connected": 1, "replicas": 1}, noted=2)
    look(gate, cluster)
    assert asked_for(client, cluster) == 1


def test_a_store_whose_first_replica_joined_after_the_last_look_was_replicated(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    promoted(client, cluster, {"connected": 0, "replicas": 0}, noted=1)
    closure = gate.open(cluster, 6, closed_for_ms=CLOSED_MS)
    assert closure is not None
    assert closure.wait_ms == CLOSED_MS + REPLICA_WAIT_MS


def test_they_count_also_where_a_broker_asks_before_the_job_looks(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    promoted(client, cluster, {"connected": 1, "replicas": 1}, noted=2)
    with pytest.raises(StoreUnavailable, match="0 of 1"):
        Leases(client).renew(cluster, "a:8080", 1, 3_000)
    look(gate, cluster)
    # Half of the one that the last look found would be none.
    client.hset(keys.open_key(cluster), mapping={"rebuild_on": "1" * 40, "replicas": 0})
    look(gate, cluster)
    assert asked_for(client, cluster) == 1


def test_a_look_at_a_history_that_was_never_opened_forgets_none_of_them(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    """The master restarts twice before its replicas are back."""
    promoted(client, cluster, {"connected": 2, "replicas": 1}, noted=0)
    look(gate, cluster)
    client.hset(keys.open_key(cluster), "rebuild_on", "1" * 40)
    look(gate, cluster)
    assert asked_for(client, cluster) == 1


def test_once_it_is_open_with_enough_replicas_only_those_count(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    """Here an operator says that none are enough."""
    promoted(client, cluster, {"connected": 1, "replicas": 1}, noted=4)
    told = ClusterGate(client, replicas=0)
    closure = told.open(cluster, 6)
    assert closure is not None
    assert told.open(cluster, 6, closure.history) is None

    client.hset(keys.open_key(cluster), "replid", "1" * 40)
    look(gate, cluster, generation=7)
    assert asked_for(client, cluster) == 0


def test_a_look_that_finds_none_forgets_none_of_those_before(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    """They may follow another master by now."""
    opened(client, cluster, gate)
    client.hset(keys.open_key(cluster), "connected", "2")
    look(gate, cluster)

    client.hset(keys.open_key(cluster), "replid", "1" * 40)
    look(gate, cluster, generation=7)
    assert asked_for(client, cluster) == 1


def test_what_is_heard_of_them_later_counts_until_enough_are_back(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    opened(client, cluster, gate)
    client.hset(keys.replicas_key(cluster), mapping={"on": BEFORE, "online": "2"})
    look(gate, cluster)

    client.hset(keys.open_key(cluster), "replid", "1" * 40)
    look(gate, cluster, generation=7)
    assert asked_for(client, cluster) == 1


def opened(client: redis.Redis, cluster: str, gate: ClusterGate) -> None:
    """Without replicas, as none were ever connected."""
    promoted(client, cluster, {}, noted=0)
    closure = gate.open(cluster, 6)
    assert closure is not None
    assert gate.open(cluster, 6, closure.history) is None


def test_a_broker_needs_a_majority_of_them_until_the_job_has_looked(
    client: redis.Redis, cluster: str
) -> None:
    """This master may itself have been left behind."""
    promoted(client, cluster, {"replicas": 0}, noted=1)
    with pytest.raises(StoreUnavailable, match="0 of 1"):
        Leases(client).renew(cluster, "a:8080", 1, 3_000)


def test_what_was_needed_once_is_needed_until_another_history(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    opened(client, cluster, gate)
    client.hset(keys.open_key(cluster), "replicas", "2")
    look(gate, cluster)
    assert asked_for(client, cluster) == 2


def test_those_that_only_brokers_saw_on_this_history_count(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    opened(client, cluster, gate)
    here = client.info("replication")["master_replid"]
    client.hset(keys.replicas_key(cluster), mapping={"on": here, "online": "2"})
    look(gate, cluster)
    assert asked_for(client, cluster) == 1


def test_a_store_that_needed_replicas_was_replicated(
    client: redis.Redis, cluster: str, gate: ClusterGate
) -> None:
    promoted(client, cluster, {"replicas": 1}, noted=0)
    closure = gate.open(cluster, 6, closed_for_ms=CLOSED_MS)
    assert closure is not None
    assert closure.wait_ms == CLOSED_MS + REPLICA_WAIT_MS
