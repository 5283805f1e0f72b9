"""A lookup of an owned bundle compared with the one HGET that every lookup needs.

One broker answers lookups of 256 topics in 64 bundles of one namespace. It has read the namespace's
bundle boundaries before. On the same connection a plain HGET reads the record of the same bundle,
and its answer is not decoded. Both run in this process in short turns, one after the other; the
figure is the median of the turns' ratios. What a lookup adds to the HGET is CPU time of this
process: parsing the topic's name, finding its place on the ring, decoding the record, making the
answer.

The second figure is the rate at which a cache answers what it was asked before, without Redis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from redis import Redis

from agent.lookup.client import LookupClient
from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from benchmarks.figures import Bar, Figure, Limit, figure
from deploy.redis_server import RedisServer
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from trimtab.model import NO_EPOCH, HashRange
from trimtab.ownership import Event
from trimtab.store.ring import bundle_at, equal_edges, position
from trimtab.wire.keys import ownership_key
from trimtab.wire.lookup import Answer, Avoid
from trimtab.wire.ownership import Transition

CLUSTER: Final = "bench"
BROKER: Final = "broker-1:8080"
NAMESPACE: Final = "tenant/namespace"
BUNDLES: Final = 64
TOPICS: Final = 256
TURNS: Final = 60
"""Turns of each side."""
AT_LEAST: Final = 0.7
_LEASE_MS: Final = 10_000


def measure(folder: Path) -> list[Figure]:
    """Measure both sides, on one Redis of their own."""
    with RedisServer(folder) as server, redis_client(server.url) as client:
        own_all(client)
        return figures(client)


def own_all(client: Redis) -> None:
    """Open the store, and have BROKER own every bundle."""
    gate = ClusterGate(client)
    closure = gate.open(CLUSTER, 1)
    if closure is not None:
        gate.open(CLUSTER, 1, closure.history)
    Leases(client).renew(CLUSTER, BROKER, 1, _LEASE_MS)
    store = OwnershipStore(client)
    for low, high in pairwise(equal_edges(BUNDLES)):
        bundle = f"{NAMESPACE}/{HashRange(low, high)}"
        request = Transition(
            id=bundle,
            bundle=bundle,
            event=Event.CLAIM,
            expect=NO_EPOCH,
            broker=BROKER,
            actor=BROKER,
        )
        if not store.apply(CLUSTER, request).accepted:
            raise RuntimeError(f"{bundle} was not given out")


def figures(client: Redis) -> list[Figure]:
    """Run turns of both sides, one after the other."""
    lookup = Lookup(LookupSettings(CLUSTER, BROKER), client, np.random.default_rng(1)).lookup

    def ask(_: str | None, topic: str, *, authoritative: bool, avoid: Avoid | None) -> Answer:
        return lookup(topic, authoritative=authoritative, avoid=avoid)

    cache = LookupClient(ask)
    topics = [f"persistent://{NAMESPACE}/topic-{i}" for i in range(TOPICS)]
    edges = equal_edges(BUNDLES)
    bundles = [f"{NAMESPACE}/{bundle_at(edges, position(topic))}" for topic in topics]
    key = ownership_key(CLUSTER)
    sides = (
        lambda: [client.hget(key, bundle) for bundle in bundles],
        lambda: [lookup(topic) for topic in topics],
        lambda: [cache.owner_of(topic) for topic in topics],
    )
    if any(answer.broker != BROKER for answer in sides[1]()):
        raise RuntimeError("a lookup did not find the owner")
    turns = [[rate(side) for side in sides] for _ in range(TURNS)]
    hgets, lookups, hits = (list(side) for side in zip(*turns, strict=True))
    return [
        figure(
            "lookup.hget_ratio",
            median(lookup / hget for lookup, hget in zip(lookups, hgets, strict=True)),
            "of HGET's rate",
            f"{median(lookups):,.0f} lookups/s, {median(hgets):,.0f} HGET/s on one connection",
            Bar(Limit.AT_LEAST, AT_LEAST),
            {"lookups/s": lookups, "HGET/s": hgets},
        ),
        figure(
            "lookup.cached",
            median(hits),
            "lookups/s",
            "answered by the cache, in one thread",
            raw={"lookups/s": hits},
        ),
    ]


def rate(side: Callable[[], Sequence[object]]) -> float:
    """Run one turn; returns its calls a second."""
    started = time.perf_counter()
    done = len(side())
    return done / (time.perf_counter() - started)
