"""A broker gets each command at least once, in order, whatever else is in its stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import redis
from structlog.testing import capture_logs

from deploy.redis_server import RedisServer
from sinks.errors import Misconfigured, StoreUnavailable
from sinks.redis.command_streams import GROUP, KEPT_S, MAX_BLOCK_MS, CommandStream
from sinks.redis.server.connections import redis_client
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.keys import command_stream

A = "a:8080"
BUNDLE = "t/n/0x00000000_0xffffffff"
LOWER = "t/n/0x40000000_0x80000000"


def write(client: redis.Redis, cluster: str, name: str, broker: str = A) -> str:
    command = Command(
        id=name, cluster=cluster, broker=broker, kind=CommandKind.UNLOAD, bundle=BUNDLE
    )
    return write_raw(client, cluster, msgspec.json.encode(command))


def write_raw(client: redis.Redis, cluster: str, value: bytes, field: str = "command") -> str:
    entry = client.xadd(command_stream(cluster, A), {field: value})
    assert isinstance(entry, bytes)
    return entry.decode()


def names(read: list[tuple[str, Command]]) -> list[str]:
    return [command.id for _, command in read]


def test_commands_written_before_the_broker_looked_are_read_in_order(
    client: redis.Redis, cluster: str
) -> None:
    entries = [write(client, cluster, name) for name in ("1", "2", "3")]

    read = CommandStream(client, cluster, A).read(1)

    assert [entry for entry, _ in read] == entries
    assert names(read) == ["1", "2", "3"]


def test_nothing_new_is_an_empty_list(client: redis.Redis, cluster: str) -> None:
    stream = CommandStream(client, cluster, A)
    assert stream.read(1) == []
    assert stream.read(1) == []


def test_what_was_not_acknowledged_comes_again_after_a_restart_before_what_is_new(
    client: redis.Redis, cluster: str
) -> None:
    write(client, cluster, "done")
    write(client, cluster, "interrupted")
    before = CommandStream(client, cluster, A)
    before.acknowledge([before.read(1)[0][0]])
    write(client, cluster, "new")

    after = CommandStream(client, cluster, A)

    assert names(after.read(1)) == ["interrupted"]
    assert names(after.read(1)) == ["new"]
    assert after.read(1) == []


def test_what_is_acknowledged_leaves_the_stream(client: redis.Redis, cluster: str) -> None:
    for name in ("1", "2", "no command for this broker", "3"):
        write(client, cluster, name, A if len(name) == 1 else "b:8080")
    stream = CommandStream(client, cluster, A)
    first, second, third = stream.read(1)

    stream.acknowledge([first[0], third[0]])

    key = command_stream(cluster, A)
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    left: Any = client.xrange(key)
    assert [entry.decode() for entry, _ in left] == [second[0]]
    pending = client.xpending(key, GROUP)
    assert isinstance(pending, dict)
    assert pending["pending"] == 1


def test_a_stream_that_never_gets_a_command_ends(client: redis.Redis, cluster: str) -> None:
    CommandStream(client, cluster, A).read(1)
    assert 0 < client.ttl(command_stream(cluster, A)) <= KEPT_S


def test_a_stream_that_ended_under_its_reader_is_followed_again(
    client: redis.Redis, cluster: str
) -> None:
    stream = CommandStream(client, cluster, A)
    stream.read(1)
    client.pexpire(command_stream(cluster, A), 20)
    assert stream.read(100) == []
    write(client, cluster, "later")
    assert names(stream.read(1)) == ["later"]


def test_more_is_pending_than_one_read_returns(client: redis.Redis, cluster: str) -> None:
    expected = [str(number) for number in range(250)]
    for name in expected:
        write(client, cluster, name)
    before = CommandStream(client, cluster, A)
    while before.read(1):
        pass

    after = CommandStream(client, cluster, A)
    found: list[str] = []
    while read := after.read(1):
        found += names(read)

    assert found == expected


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b'{"id":"1"}',
        b'{"id":1}',
        b"\xff",
        b'{"id":"\xff"}',
        b'{"id":"x","kind":"dance"}',
        pytest.param(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="deep"),
    ],
)
def test_an_entry_that_is_no_command_is_counted_and_does_not_come_again(
    client: redis.Redis, cluster: str, value: bytes
) -> None:
    write_raw(client, cluster, value)
    write(client, cluster, "good")
    stream = CommandStream(client, cluster, A)

    assert names(stream.read(1)) == ["good"]

    assert stream.rejected == 1
    assert names(CommandStream(client, cluster, A).read(1)) == ["good"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"bundle": "nonsense"}, id="no range"),
        pytest.param({"bundle": "t/n/0x80000000_0x00000000"}, id="an empty range"),
        pytest.param({"neighbour": "t/n/0x00000000_0x80000000"}, id="no neighbour above"),
        pytest.param({"neighbour": "nonsense"}, id="no neighbour"),
        pytest.param({"epoch": [1 << 53, 1]}, id="an epoch that Lua cannot count"),
        pytest.param({"deadline": 1 << 64}, id="a time beyond an integer"),
        pytest.param({"issuedAt": -1}, id="a time before all others"),
    ],
)
@pytest.mark.parametrize("kind", [CommandKind.SPLIT, CommandKind.MERGE, CommandKind.OWN])
def test_a_command_that_no_broker_can_obey_does_not_come_again(
    client: redis.Redis, cluster: str, kind: CommandKind, change: dict[str, object]
) -> None:
    command = {"id": "1", "cluster": cluster, "broker": A, "kind": kind, "bundle": LOWER}
    write_raw(client, cluster, msgspec.json.encode(command | change))
    write(client, cluster, "good")
    stream = CommandStream(client, cluster, A)

    with capture_logs() as told:
        assert names(stream.read(1)) == ["good"]

    assert [(line["log_level"], line["number"]) for line in told] == [("warning", 1)]
    assert stream.rejected == 1
    assert names(CommandStream(client, cluster, A).read(1)) == ["good"]


def test_entries_without_the_field_or_for_another_broker_are_rejected(
    client: redis.Redis, cluster: str
) -> None:
    write_raw(client, cluster, b"{}", field="order")
    write(client, cluster, "not mine", broker="b:8080")
    stream = CommandStream(client, cluster, A)

    assert stream.read(1) == []
    assert stream.rejected == 2


def test_a_pending_entry_that_was_trimmed_away_is_dropped(
    client: redis.Redis, cluster: str
) -> None:
    entry = write(client, cluster, "trimmed")
    CommandStream(client, cluster, A).read(1)
    client.xdel(command_stream(cluster, A), entry)
    write(client, cluster, "new")
    stream = CommandStream(client, cluster, A)

    assert names(stream.read(1) + stream.read(1)) == ["new"]
    pending = client.xpending(command_stream(cluster, A), GROUP)
    assert isinstance(pending, dict)
    assert pending["pending"] == 1


def test_a_stream_that_vanished_is_followed_again(client: redis.Redis, cluster: str) -> None:
    stream = CommandStream(client, cluster, A)
    stream.read(1)
    client.delete(command_stream(cluster, A))
    write(client, cluster, "after the loss")

    assert names(stream.read(1)) == ["after the loss"]


def test_what_was_delivered_in_a_lost_answer_comes_again_and_what_is_in_hand_does_not(
    own_server: RedisServer,
) -> None:
    with redis_client(own_server.url) as client:
        stream = CommandStream(client, "c", A)
        write(client, "c", "in hand")
        assert names(stream.read(1)) == ["in hand"]
        assert stream.read(1) == []
        write(client, "c", "lost on the way")
        # As the server sees it, the broker got this one.
        twin = CommandStream(client, "c", A)
        assert names(twin.read(1) + twin.read(1)) == ["in hand", "lost on the way"]
        own_server.kill()
        with pytest.raises(StoreUnavailable):
            stream.read(1)
        own_server.start()

        assert names(stream.read(1)) == ["lost on the way"]


@pytest.mark.parametrize("block_ms", [-1, 0, MAX_BLOCK_MS + 1])
def test_a_wait_without_end_or_beyond_the_timeout_is_a_mistake(
    client: redis.Redis, cluster: str, block_ms: int
) -> None:
    with pytest.raises(ValueError, match="block_ms"):
        CommandStream(client, cluster, A).read(block_ms)


def test_the_longest_wait_is_no_timeout(client: redis.Redis, cluster: str) -> None:
    stream = CommandStream(client, cluster, A)
    assert stream.read(1) == []
    assert stream.read(MAX_BLOCK_MS) == []


def test_a_group_that_cannot_be_made_is_told_as_what_it_is(
    own_server: RedisServer, cluster: str
) -> None:
    """A full server, and a user without the right: the agent's loop waits for both to end."""
    with redis_client(own_server.url) as admin:
        admin.config_set("maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            CommandStream(admin, cluster, A).read(1)
        admin.config_set("maxmemory", "0")
        admin.acl_setuser(
            "reader", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-xgroup|create"]
        )
        with redis_client(f"redis://reader:x@127.0.0.1:{own_server.port}/0") as client:
            with pytest.raises(Misconfigured):
                CommandStream(client, cluster, A).read(1)
            assert CommandStream(admin, cluster, A).read(1) == []
            assert CommandStream(client, cluster, A).read(1) == []
