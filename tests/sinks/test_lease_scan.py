"""Leases are found at a bounded cost, and mean nothing while the store is closed."""

from __future__ import annotations

import random
from collections.abc import Iterable

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


def hold(client: redis.Redis, cluster: str, brokers: Iterable[str]) -> None:
    """Give brokers leases that outlive the test, and note their sessions."""
    keep_alive(client, cluster, brokers)
    client.hset(sessions_key(cluster), mapping=dict.fromkeys(brokers, "1 1"))


def test_nothing_has_changed_while_exactly_the_known_hold_leases(
    client: redis.Redis, cluster: str
) -> None:
    let_in(client, cluster, GENERATION)
    hold(client, cluster, ["a:1", "b:1"])
    client.hset(sessions_key(cluster), "dead:1", "1 1")
    scan = LeaseScan(client)
    assert scan.changed({cluster: {"a:1", "b:1"}}, GENERATION) == set()
    for known in ({"a:1"}, {"a:1", "b:1", "c:1"}, {"a:1", "c:1"}, set[str]()):
        assert scan.changed({cluster: known}, GENERATION) == {cluster}


def test_an_empty_cluster_has_not_changed(client: redis.Redis, cluster: str) -> None:
    let_in(client, cluster, GENERATION)
    assert LeaseScan(client).changed({cluster: set()}, GENERATION) == set()


def test_each_cluster_changes_for_itself(client: redis.Redis, cluster: str) -> None:
    known, names = {}, [f"{cluster}-{number}" for number in range(5)]
    for name in names:
        let_in(client, name, GENERATION)
        hold(client, name, ["a:1"])
        known[name] = {"a:1"}
    lost, joined, closed, damaged, _ = names
    client.delete(lease_key(lost, "a:1"))
    hold(client, joined, ["b:1"])
    client.hset(open_key(closed), "generation", GENERATION + 1)
    client.delete(sessions_key(damaged))
    client.set(sessions_key(damaged), "no hash")
    assert LeaseScan(client).changed(known, GENERATION) == {lost, joined, closed, damaged}


def test_one_that_joins_a_large_fleet_is_found_and_then_read(
    client: redis.Redis, cluster: str
) -> None:
    """Its note may lie on any page; what found it reads no further until it was read."""
    let_in(client, cluster, GENERATION)
    fleet = [f"b-{number:05}:1" for number in range(9_000)]
    hold(client, cluster, fleet)
    scan, known = LeaseScan(client), set(fleet)
    hold(client, cluster, ["new:1"])
    looks = (scan.changed({cluster: known}, GENERATION) for _ in range(20))
    assert {cluster} in looks
    found = scan.alive(cluster, GENERATION, known)
    assert found is not None
    assert "new:1" in found


def test_one_that_joins_any_of_many_clusters_is_found_within_few_looks(
    client: redis.Redis, cluster: str
) -> None:
    """Each look reads the session notes of some of the clusters, the next ones those of others."""
    names = [f"{cluster}-{number:02}" for number in range(30)]
    fleet = [f"b-{number:03}:1" for number in range(200)]
    for name in names:
        let_in(client, name, GENERATION)
        hold(client, name, fleet)
    scan, known = LeaseScan(client), {name: set(fleet) for name in names}
    assert not any(scan.changed(known, GENERATION) for _ in range(4))
    for name in names:
        hold(client, name, ["new:1"])
    looks = [scan.changed(known, GENERATION) for _ in range(4)]
    assert set().union(*looks) == {*names}
    assert all(len(found) < len(names) for found in looks)


@pytest.mark.parametrize("lost", [0, 1, 4_321, 8_999])
def test_a_lease_that_a_large_fleet_loses_is_missed_within_few_looks(
    client: redis.Redis, cluster: str, lost: int
) -> None:
    """Of two clusters, and each look asks for a part of the leases of both."""
    fleet, few = [f"b-{number:05}:1" for number in range(9_000)], f"{cluster}-few"
    for name, brokers in ((cluster, fleet), (few, ["a:1", "b:1", "c:1"])):
        let_in(client, name, GENERATION)
        hold(client, name, brokers)
    scan, known = LeaseScan(client), {cluster: set(fleet), few: {"a:1", "b:1", "c:1"}}
    assert not any(scan.changed(known, GENERATION) for _ in range(8))
    client.delete(lease_key(cluster, fleet[lost]), lease_key(few, "c:1"))
    looks = [scan.changed(known, GENERATION) for _ in range(4)]
    assert set().union(*looks) == {cluster, few}


def test_what_has_not_changed_is_what_is_read(client: redis.Redis, cluster: str) -> None:
    """The cheap question against the dear one, over a random history."""
    let_in(client, cluster, GENERATION)
    draws, known = random.Random(7), set[str]()
    scan, changes = LeaseScan(client), 0
    for _ in range(200):
        for number in range(draws.choice((0, 0, 1, 3))):
            broker = f"{draws.randrange(12)}-{number}:1"
            if draws.random() < 0.5:
                hold(client, cluster, [broker])
            else:
                client.delete(lease_key(cluster, broker))
        changed = scan.changed({cluster: known}, GENERATION) == {cluster}
        held = scan.alive(cluster, GENERATION, known)
        assert held is not None
        assert changed == (held.keys() != known)
        changes += changed
        known = set(held)
    assert 50 < changes < 190
