"""Tools see each command once, and skip what is no command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from admin import follower
from admin.follower import Sieve, following
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from sinks.errors import KafkaUnavailable
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from tests.agent.support import BUNDLE, A, B
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.keys import COMMANDS


def command(name: str, cluster: str = "c", broker: str = A) -> bytes:
    told = Command(id=name, cluster=cluster, broker=broker, kind=CommandKind.UNLOAD, bundle=BUNDLE)
    return msgspec.json.encode(told)


def ids(commands: Iterator[Command]) -> list[str]:
    return [each.id for each in commands]


@pytest.mark.parametrize(
    ("cluster", "broker", "seen"),
    [
        pytest.param(None, None, ["1", "2", "3"], id="all"),
        pytest.param("c", None, ["1", "2"], id="of a cluster"),
        pytest.param(None, A, ["1", "3"], id="of a broker"),
        pytest.param("c", A, ["1"], id="of a broker of a cluster"),
    ],
)
def test_only_what_was_asked_for_is_seen(
    cluster: str | None, broker: str | None, seen: list[str]
) -> None:
    values = [command("1"), command("2", broker=B), command("3", cluster="d")]
    assert ids(Sieve(cluster, broker).commands(values)) == seen


def test_a_batch_that_was_repeated_is_seen_once() -> None:
    sieve = Sieve()
    batch = [command("1"), command("2")]
    assert ids(sieve.commands([*batch, *batch, command("3")])) == ["1", "2", "3"]
    assert sieve.repeated == 2


def test_ids_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "REMEMBERED", 2)
    sieve = Sieve()
    names = ["1", "2", "3", "2", "1"]
    assert ids(sieve.commands(map(command, names))) == ["1", "2", "3", "1"]


def test_what_is_no_command_is_counted_and_skipped() -> None:
    sieve = Sieve()
    poison = [None, b"", b"{", b"[]", b"\xff\xfe", b'{"id": "1"}', b"[" * 10_000]
    assert ids(sieve.commands([command("1"), *poison, command("2")])) == ["1", "2"]
    assert sieve.poisoned == len(poison)


@pytest.fixture
def bootstrap(kafka: KafkaServer) -> str:
    ensure_topics(kafka.bootstrap)
    return kafka.bootstrap


def publish(bootstrap: str, *values: bytes) -> None:
    Publisher(bootstrap).publish([Outgoing(COMMANDS, f"c/{A}", value) for value in values])


@pytest.mark.e2e
def test_the_earliest_commands_and_those_that_come_later_are_followed(bootstrap: str) -> None:
    publish(bootstrap, command("1", "early"), b"poison", command("1", "early"))
    sieve = Sieve("early")
    with following(bootstrap, earliest=True) as values:
        commands = sieve.commands(values)
        assert next(commands).id == "1"
        publish(bootstrap, command("2", "early"))
        assert next(commands).id == "2"
    assert sieve.repeated == 1
    assert sieve.poisoned >= 1


@pytest.mark.e2e
def test_from_now_on_means_from_when_following_began(bootstrap: str) -> None:
    publish(bootstrap, command("old", "late"))
    with following(bootstrap) as values:
        publish(bootstrap, command("new", "late"))
        assert ids(islice(Sieve("late").commands(values), 1)) == ["new"]


@pytest.mark.e2e
def test_two_tools_see_the_same(bootstrap: str) -> None:
    publish(bootstrap, command("1", "shared"))
    for _ in range(2):
        with following(bootstrap, earliest=True) as values:
            assert next(Sieve("shared").commands(values)).id == "1"


@pytest.mark.e2e
def test_commands_are_printed_as_lines_of_json(bootstrap: str) -> None:
    publish(bootstrap, command("1", "printed"), command("2", "printed", B))
    tool = [sys.executable, "-m", "admin.follower", "--kafka", bootstrap, "--earliest"]
    with subprocess.Popen(
        [*tool, "--cluster", "printed", "--broker", B], stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.terminate()
    assert msgspec.json.decode(line, type=Command).id == "2"


def test_an_absent_kafka_is_named() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(KafkaUnavailable, match=address), following(address):
        pass
