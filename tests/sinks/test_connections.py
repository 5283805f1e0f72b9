"""Redis absent, hanging, full, read-only or locked: one error each, and nothing done twice."""

from __future__ import annotations

import os
import signal
import time

import pytest
import redis

from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.connections import TIMEOUT_SECONDS, redis_client, translated
from sinks.errors import Misconfigured, StoreUnavailable
from sinks.ownership_store import OwnershipStore
from tests.support.opening import keep_alive, let_in
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.wire.keys import applied_key
from trimtab.wire.ownership import Transition

ASSIGN = Transition(
    id="1", bundle="t/n/0x00000000_0xffffffff", event=Event.ASSIGN, expect=NO_EPOCH, broker="a"
)


def test_an_absent_server_is_named_by_its_address_and_not_by_its_password() -> None:
    port = free_port()
    url = f"redis://user:sesame@127.0.0.1:{port}/0"
    with redis_client(url) as client, pytest.raises(StoreUnavailable) as caught:
        OwnershipStore(client).ping()

    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://user:sesame@h/0", "redis://:sesame@h:port/0", ""])
def test_an_address_that_cannot_be_one_is_not_repeated(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        redis_client(url)

    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_wrong_password_is_not_waited_for(redis_server: RedisServer) -> None:
    url = f"redis://:sesame@127.0.0.1:{redis_server.port}/0"
    with redis_client(url) as client, pytest.raises(Misconfigured) as caught:
        OwnershipStore(client).ping()

    assert "sesame" not in str(caught.value)


def test_a_hanging_server_costs_one_timeout_and_one_write(own_server: RedisServer) -> None:
    """redis-py's own defaults waited 40 s and applied an INCR twice."""
    with redis_client(own_server.url) as client:
        client.ping()
        os.kill(own_server.pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            with pytest.raises(StoreUnavailable, match=str(own_server.port)), translated(client):
                client.incr("n")
        finally:
            os.kill(own_server.pid, signal.SIGCONT)

        assert time.monotonic() - began < 2 * TIMEOUT_SECONDS
        assert client.get("n") == b"1"


@pytest.mark.parametrize(
    ("setting", "value", "usual"),
    [
        pytest.param("maxmemory", "1", "0", id="out of memory"),
        pytest.param("min-replicas-to-write", "1", "0", id="no replicas"),
    ],
)
def test_a_server_that_takes_no_writes_applies_no_part_of_a_batch(
    own_server: RedisServer, setting: str, value: str, usual: str
) -> None:
    with redis_client(own_server.url) as client:
        store = OwnershipStore(client)
        let_in(client, "c", 1)
        keep_alive(client, "c", ("a",))
        client.config_set(setting, value)

        with pytest.raises(StoreUnavailable):
            store.apply_batch("c", [ASSIGN], generation=1, query_id="q", batch=0)

        client.config_set(setting, usual)
        assert store.records("c") == {}
        assert client.exists(applied_key("c")) == 0
        done = store.apply_batch("c", [ASSIGN], generation=1, query_id="q", batch=0)
        assert done.outcomes[0].accepted
        assert not done.repeated


def test_a_replica_takes_no_batch(own_server: RedisServer) -> None:
    with redis_client(own_server.url) as client:
        store = OwnershipStore(client)
        let_in(client, "c", 1)
        client.replicaof("127.0.0.1", str(free_port()))

        with pytest.raises(StoreUnavailable):
            store.apply_batch("c", [ASSIGN], generation=1, query_id="q", batch=0)


def test_a_right_that_is_missing_is_not_waited_for(own_server: RedisServer) -> None:
    with redis_client(own_server.url) as admin:
        admin.acl_setuser("reader", enabled=True, nopass=True, commands=["+ping"])
    with redis_client(f"redis://reader:x@127.0.0.1:{own_server.port}/0") as client:
        store = OwnershipStore(client)
        store.ping()
        with pytest.raises(Misconfigured):
            store.records("c")


def test_a_mistake_of_ours_is_not_dressed_up(client: redis.Redis, cluster: str) -> None:
    client.set(cluster, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"), translated(client):
        client.hget(cluster, "field")
