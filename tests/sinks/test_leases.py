"""A lease lives until it runs out; on a closed store only a broker that has spoken renews it."""

from __future__ import annotations

import pytest
import redis

from sinks.leases import Lease, Leases, Renewal
from sinks.scripts import lease_script
from tests.support.opening import let_in
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.ownership import Record

A = "a:8080"
LONG_MS = 8_000


@pytest.fixture
def leases(client: redis.Redis, cluster: str) -> Leases:
    """On an open store."""
    let_in(client, cluster, 1)
    return Leases(client)


def close(client: redis.Redis, cluster: str) -> str:
    """As a restart of the server does; the run it has now."""
    client.hset(keys.open_key(cluster), "run_id", "0" * 40)
    return str(client.info("server")["run_id"])


def test_renewing_tells_whose_lease_it_was(leases: Leases, cluster: str) -> None:
    assert leases.renew(cluster, A, 1, LONG_MS) == Lease(Renewal.HELD, "", LONG_MS)
    assert leases.renew(cluster, A, 1, LONG_MS) == Lease(Renewal.HELD, "1", LONG_MS)
    assert leases.renew(cluster, A, 2, LONG_MS) == Lease(Renewal.HELD, "1", LONG_MS)


def test_a_process_that_started_earlier_does_not_take_the_lease_back(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 10, LONG_MS)

    assert leases.renew(cluster, A, 9, LONG_MS).renewal is Renewal.SUPERSEDED
    assert client.get(keys.lease_key(cluster, A)) == b"10"


def test_nobody_gets_a_longer_lease_than_the_job_waits_for(leases: Leases, cluster: str) -> None:
    assert leases.renew(cluster, A, 1, 3_600_000).granted_ms == 10_000


def test_a_broker_is_alive_until_its_lease_runs_out(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, "lasting:8080", 1, LONG_MS)
    leases.renew(cluster, "passing:8080", 1, 1)

    while "passing:8080" in leases.alive(cluster):
        pass

    assert leases.alive(cluster) == {"lasting:8080"}
    assert leases.renew(cluster, "passing:8080", 1, LONG_MS).detail == ""


def test_a_lease_that_is_given_up_is_gone_at_once(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, A, 1, LONG_MS)

    assert leases.renew(cluster, A, 1, 0).renewal is Renewal.RELEASED

    while A in leases.alive(cluster):
        pass


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_on_a_closed_store_a_broker_says_first_what_it_saw(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    leases.renew(cluster, A, 7, LONG_MS)
    run = close(client, cluster)
    if not scripted:
        client.script_flush()
    record = Record(state=State.OWNED, epoch=Epoch(1, 4), owner=A)

    assert leases.renew(cluster, A, 7, LONG_MS) == Lease(Renewal.ASSERT, run, 0)
    leases.say(cluster, A, "f" * 40, Assertion(records={}))
    assert leases.renew(cluster, A, 7, LONG_MS) == Lease(Renewal.ASSERT, run, 0)
    leases.say(cluster, A, run, Assertion(records={"t/n/0x00000000_0xffffffff": record}))
    assert leases.renew(cluster, A, 7, LONG_MS) == Lease(Renewal.ASSERTED, "7", LONG_MS)
    assert leases.renew(cluster, A, 6, LONG_MS).renewal is Renewal.SUPERSEDED

    assert client.script_exists(lease_script().sha) == [scripted]


@pytest.mark.parametrize("name", ["a*", "a?", "a[bc]", "a^", "a\\"])
def test_clusters_whose_names_look_like_patterns_are_kept_apart(
    client: redis.Redis, name: str
) -> None:
    let_in(client, name, 1)
    let_in(client, "ab", 1)
    leases = Leases(client)
    leases.renew(name, "mine:8080", 1, LONG_MS)
    leases.renew("ab", "other:8080", 1, LONG_MS)

    assert leases.alive(name) == {"mine:8080"}
