"""Keys of another type than the scripts write, and lists longer than Lua can unpack."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
import redis

from sinks.errors import Closed
from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import ask, broker, job
from tests.contracts.conftest import BROKERS
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.keys import lease_key, ownership_key
from trimtab.wire.ownership import Refused

A, B, _ = BROKERS
MORE_THAN_LUA_UNPACKS = 8_001


def test_a_store_whose_records_are_no_hash_is_closed(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.delete(ownership_key(cluster))
    client.set(ownership_key(cluster), "spoiled")

    with pytest.raises(Closed, match="its records, or their index, are gone"):
        store.apply(cluster, broker(A, Event.CLAIM))


def test_a_broker_whose_lease_is_no_text_may_still_serve_and_gets_nothing(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    claimed = store.apply(cluster, broker(A, Event.CLAIM)).record
    assert claimed is not None
    client.delete(lease_key(cluster, A), lease_key(cluster, B))
    for spoiled in (A, B):
        client.rpush(lease_key(cluster, spoiled), "spoiled")

    taken = ask(store, cluster, broker(BROKERS[2], Event.ASSIGN, claimed.epoch, broker=BROKERS[2]))
    given = ask(store, cluster, job(Event.TRANSFER, claimed.epoch, B))

    assert (taken.reason, given.reason) == (Refused.OWNER_LIVES, Refused.NO_LEASE)


def test_a_brokers_list_of_any_length_is_applied(store: OwnershipStore, cluster: str) -> None:
    # The ring in as many ranges, each of its own name.
    edges = [f"0x{at:08x}" for at in range(MORE_THAN_LUA_UNPACKS + 1)]
    names = [f"tenant/ns/{low}_{high}" for low, high in pairwise(edges)]
    asked = broker(A, Event.CLAIM)
    claims = [msgspec.structs.replace(asked, id=name, bundle=name) for name in names]

    outcomes = store.apply_all(cluster, claims)

    assert [outcome.bundle for outcome in outcomes] == names
    assert all(outcome.accepted for outcome in outcomes)
    # Those beyond the first reading are found too.
    late = msgspec.structs.replace(asked, id="late", bundle=names[-1], expect=NO_EPOCH)
    assert store.apply(cluster, late).reason is Refused.STALE_EPOCH
    assert store.record(cluster, names[-1]) is not None


def test_a_request_far_down_a_long_list_sees_its_record(
    store: OwnershipStore, cluster: str
) -> None:
    first = broker(A, Event.CLAIM, id="first")
    held = store.apply(cluster, first).record
    assert held is not None
    asked = broker(A, Event.CLAIM, Epoch(held.epoch.generation, held.epoch.counter + 1))
    many = [msgspec.structs.replace(asked, id=str(n)) for n in range(MORE_THAN_LUA_UNPACKS)]

    outcomes = store.apply_all(cluster, many)

    assert {outcome.reason for outcome in outcomes} == {Refused.STALE_EPOCH}
    assert outcomes[-1].record == held
