"""Leases are found at a bounded cost, and mean nothing while the store is closed."""

from __future__ import annotations

import pytest
import redis

from sinks.redis.leasing.lease_scan import LeaseScan
from sinks.redis.leasing.leases import Leases
from tests.support.opening import keep_alive, let_in
from trimtab.wire.keys import lease_key, open_key, ownership_key, sessions_key

GENERATION = 4
BUNDLE = b"t/n/0x00000000_0x80000000"
OWNED = b'{"state":"Owned","epoch":[1,1],"owner":"a:1"}'


def test_those_who_hold_a_lease_are_alive_whether_known_or_not(
    client: redis.Redis, cluster: str
) -> None:
    """New ones by their sessions: however many keys others have on this server."""
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, ["known:1"])
    Leases(client).renew(cluster, "new:1", 1, 9_000)
    client.hset(sessions_key(cluster), "dead:1", "1 1")

    found = LeaseScan(client).alive(cluster, GENERATION, ["known:1", "gone:1"])

    assert found is not None
    assert set(found) == {"known:1", "new:1"}
    assert 599 < found["known:1"] <= 600
    assert 0 < found["new:1"] <= 9


def test_a_lease_that_ran_out_is_missed_at_once(client: redis.Redis, cluster: str) -> None:
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, ["a:1", "b:1"])
    client.delete(lease_key(cluster, "a:1"))
    found = LeaseScan(client).alive(cluster, GENERATION, ["a:1", "b:1"])
    assert found is not None
    assert set(found) == {"b:1"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("replid", "another"), id="opened on another history"),
        pytest.param(("generation", "5"), id="opened to a newer job"),
    ],
)
def test_a_closed_store_names_no_broker(
    client: redis.Redis, cluster: str, change: tuple[str, str]
) -> None:
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, ["a:1"])
    client.hset(open_key(cluster), *change)
    assert LeaseScan(client).alive(cluster, GENERATION, ["a:1"]) is None


def test_a_store_that_was_never_opened_names_no_broker(client: redis.Redis, cluster: str) -> None:
    keep_alive(client, cluster, ["a:1"])
    assert LeaseScan(client).alive(cluster, GENERATION, ["a:1"]) is None


def test_owners_and_those_who_are_to_be_are_named(client: redis.Redis, cluster: str) -> None:
    records = {
        "t/n/0x00000000_0x40000000": '{"state":"Owned","epoch":[1,1],"owner":"a:1"}',
        "t/n/0x40000000_0x80000000": '{"state":"Free","epoch":[1,2]}',
        "t/n/0x80000000_0xffffffff": (
            '{"state":"Releasing","epoch":[1,3],"owner":"b:1","destination":"c:1"}'
        ),
    }
    for bundle, record in records.items():
        client.hset(ownership_key(cluster), bundle, record)
    assert LeaseScan(client).owners(cluster) == ({"a:1", "b:1", "c:1"}, ())


@pytest.mark.parametrize(
    ("name", "record", "told"),
    [
        pytest.param(BUNDLE, b'{"state":"Ow', BUNDLE.decode(), id="cut short"),
        pytest.param(BUNDLE, b'{"owner":"\xff"}', BUNDLE.decode(), id="a record that is no text"),
        pytest.param(BUNDLE, b"[" * 100_000, BUNDLE.decode(), id="nested too deeply"),
        pytest.param(b"\xff", OWNED, r"b'\xff'", id="a name that is no text"),
    ],
)
def test_a_record_that_cannot_be_read_hides_no_other_owner(
    client: redis.Redis, cluster: str, name: bytes, record: bytes, told: str
) -> None:
    client.hset(ownership_key(cluster), name, record)
    client.hset(ownership_key(cluster), "t/n/0x80000000_0xffffffff", OWNED)

    assert LeaseScan(client).owners(cluster) == ({"a:1"}, (told,))
