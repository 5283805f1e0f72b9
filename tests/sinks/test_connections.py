"""Redis absent, hanging, full, read-only or locked: one error each, and nothing done twice."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis._parsers.resp2 import _RESP2Parser

from deploy.ports import free_port
from deploy.redis_server import RedisServer, find_installed, wheel
from sinks.errors import Damaged, Misconfigured, SinkError, StoreUnavailable
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import TIMEOUT_SECONDS, redis_client, translate_errors
from sinks.redis.server.replies import sink_error
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
    """redis-py's own defaults waited 40 s and applied an INCR twice: it is not asked again."""
    with redis_client(own_server.url) as client:
        client.ping()
        assert client.connection_pool.connection_kwargs["socket_timeout"] == TIMEOUT_SECONDS
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            with (
                pytest.raises(StoreUnavailable, match=str(own_server.port)),
                translate_errors(client),
            ):
                client.incr("n")
        finally:
            os.kill(own_server.pid, signal.SIGCONT)

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


def test_a_password_that_was_changed_is_told_once_a_connection_breaks(
    own_server: RedisServer,
) -> None:
    with redis_client(own_server.url) as admin:
        admin.acl_setuser("job", enabled=True, passwords=["+first"], commands=["+@all"], keys=["*"])
        with redis_client(f"redis://job:first@127.0.0.1:{own_server.port}/0") as client:
            store = OwnershipStore(client)
            store.ping()
            admin.acl_setuser("job", enabled=True, passwords=["-first", "+second"])
            admin.client_kill_filter(user="job")
            # The first may find the connection that was cut.
            with suppress(StoreUnavailable, Misconfigured):
                store.ping()
            with pytest.raises(Misconfigured, match="check the user and password"):
                store.ping()


@pytest.fixture(params=[find_installed, wheel], ids=["redis", "valkey"])
def either_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    program = request.param()
    if program is None:
        pytest.skip("this machine has no such server")
    more = ['rename-command HINCRBY ""']
    with RedisServer(tmp_path, program=program, settings=more) as server:
        yield server


@pytest.mark.parametrize(
    ("command", "next_step"),
    [
        pytest.param(["GET", "a"], "what its ACL lets", id="command"),
        pytest.param(["HGET", "b", "f"], "what its ACL lets", id="key"),
        pytest.param(["EVALSHA", "0" * 40, "0"], "what its ACL lets", id="scripts"),
        pytest.param(
            ["EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "a"],
            "what its ACL lets",
            id="command in a script",
        ),
        pytest.param(
            ["EVAL", "#!lua\nreturn redis.call('HGET', 'b', 'f')", "0"],
            "what its ACL lets",
            id="key in a script",
        ),
        pytest.param(["HINCRBY", "a", "f", "1"], "rename no command", id="renamed"),
        pytest.param(
            ["EVAL", "#!lua\nreturn redis.call('HINCRBY', KEYS[1], 'f', 1)", "1", "a"],
            "rename no command",
            id="renamed, in a script",
        ),
    ],
)
def test_every_right_that_is_missing_is_told_with_what_to_do(
    either_server: RedisServer, command: list[str], next_step: str
) -> None:
    with redis_client(either_server.url) as admin:
        admin.acl_setuser(
            "u", enabled=True, nopass=True, keys=["a"], commands=["+@all", "-get", "-evalsha"]
        )
    with (
        redis_client(f"redis://u:x@127.0.0.1:{either_server.port}/0") as client,
        pytest.raises(Misconfigured, match=next_step),
        translate_errors(client),
    ):
        execute(client, command)


def execute(client: redis.Redis, command: list[str]) -> None:
    # Any: redis-py leaves this one without annotations.
    untyped: Any = client
    untyped.execute_command(*command)


def test_a_database_that_is_not_there_is_told(redis_server: RedisServer) -> None:
    url = redis_server.url.removesuffix("/0") + "/4711"
    with redis_client(url) as client, pytest.raises(Misconfigured, match="name a database"):
        OwnershipStore(client).ping()


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("MOVED 1 127.0.0.1:7001", Misconfigured),
        ("ASK 1 127.0.0.1:7001", Misconfigured),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Misconfigured),
        ("CROSSSLOT Keys in request don't hash to the same slot", Misconfigured),
        ("CLUSTERDOWN Hash slot not served", Misconfigured),
        ("ERR Script attempted to access a non local key in a cluster node", Misconfigured),
        ("DENIED Redis is running in protected mode because", Misconfigured),
        ("NOAUTH Authentication required.", Misconfigured),
        ("WRONGPASS invalid username-password pair or user is disabled.", Misconfigured),
        ("NOPERM this user has no permissions to run the 'evalsha' command", Misconfigured),
        ("MASTERDOWN Link with MASTER is down", StoreUnavailable),
        ("READONLY You can't write against a read only replica.", StoreUnavailable),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreUnavailable),
        ("LOADING Redis is loading the dataset in memory", StoreUnavailable),
        ("NOREPLICAS Not enough good replicas to write.", StoreUnavailable),
        ("MISCONF Errors writing to the AOF file: No space left on device", StoreUnavailable),
        ("BUSY Redis is busy running a script.", StoreUnavailable),
        ("NOGROUP No such key 'x' or consumer group", StoreUnavailable),
        ("UNBLOCKED force unblock from blocking operation", StoreUnavailable),
        ("EXECABORT Transaction discarded because of previous errors.", StoreUnavailable),
        ("ERR EXEC without MULTI", StoreUnavailable),
        ("ERR Unable to connect to backend", StoreUnavailable),
        ("-IOERR error or timeout reading to target instance", StoreUnavailable),
        ("WRONGTYPE Operation against a key", Damaged),
        (
            "ERR The stream has exhausted the last ID script: 1f, on @user_script:5.",
            Damaged,
        ),
        ("ERR user_script:3: attempt to index nil script: 1f, on @user_script:3.", Damaged),
        ("ERR wrong number of arguments for 'get' command", None),
        ("ERR syntax error", None),
        ("NOSCRIPT No matching script. Please use EVAL.", None),
    ],
)
def test_what_each_reply_asks_of_us(reply: str, told: type[SinkError] | None) -> None:
    """As redis-py reads it, alone and as one of several."""
    parser: Any = _RESP2Parser
    error = parser.parse_error(reply)
    assert type(sink_error("Redis at h:1", error)) is (told or type(None))
    error.args = (f"Command # 2 (GET a) of pipeline caused error: {error}",)
    assert type(sink_error("Redis at h:1", error)) is (told or type(None))


def test_a_mistake_of_ours_is_not_dressed_up(client: redis.Redis, cluster: str) -> None:
    untyped: Any = client
    with pytest.raises(redis.ResponseError, match="wrong number"), translate_errors(client):
        untyped.execute_command("HGET", cluster)


def test_a_key_of_a_wrong_type_is_told_with_what_to_do(client: redis.Redis, cluster: str) -> None:
    client.set(cluster, "text")
    with pytest.raises(Damaged, match=r"WRONGTYPE .*delete that key"), translate_errors(client):
        client.hget(cluster, "field")


def test_a_port_that_never_answers_tls_may_be_a_plain_one() -> None:
    """Redis waits for the end of a line, which a TLS handshake may not have."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with (
            redis_client(f"rediss://127.0.0.1:{port}/0") as client,
            pytest.raises(StoreUnavailable, match="speaks none, say redis://"),
            translate_errors(client),
        ):
            client.ping()
