"""A change needs the replicas that a renewal needs, also where no replica was ever seen."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from sinks.errors import Isolated
from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import ask, broker
from trimtab.ownership import Event
from trimtab.wire import keys

A = "a:8080"


def test_a_change_needs_the_replicas_that_the_job_asks_for(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.hset(keys.open_key(cluster), mapping={"replicas": 1, "replicas_set": 1})
    with pytest.raises(Isolated, match="0 of 1"):
        ask(store, cluster, broker(A, Event.CLAIM))


def test_a_change_needs_some_of_those_that_earlier_histories_had(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    history: Any = client.hget(keys.open_key(cluster), "replid")
    client.hset(keys.replicas_key(cluster), mapping={"on": history, "before": 2})
    with pytest.raises(Isolated, match="0 of 1"):
        ask(store, cluster, broker(A, Event.CLAIM))
