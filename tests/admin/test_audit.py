"""`trimtab audit` against a real Kafka and Redis, whose records the scripts wrote."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import redis
from typer.testing import CliRunner, Result

from admin import cli
from admin.auditor import Auditor, follow
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.pruning import Pruner
from tests.support.opening import keep_alive, let_in
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.store.requests import issue_commands
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Change, Record, Transition

pytestmark = pytest.mark.e2e

BUNDLE = "t/n/0x00000000_0xffffffff"
A, B = "a:8080", "b:8080"
GENERATION = 7


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@pytest.fixture
def bootstrap(kafka: KafkaServer) -> str:
    ensure_topics(kafka.bootstrap)
    return kafka.bootstrap


@pytest.fixture
def publisher(bootstrap: str) -> Publisher:
    return Publisher(bootstrap)


@pytest.fixture
def store(client: redis.Redis, cluster: str, publisher: Publisher) -> OwnershipStore:
    """In which a bundle was handed over, and all but the last step has been carried to Kafka."""
    let_in(client, cluster, GENERATION)
    keep_alive(client, cluster, (A, B))
    store = OwnershipStore(client)
    claim = Transition(id="claim", bundle=BUNDLE, event=Event.CLAIM, expect=NO_EPOCH, actor=A)
    assert store.apply(cluster, claim).accepted
    command = Command(
        id="move", cluster=cluster, broker=A, kind=CommandKind.TRANSFER, bundle=BUNDLE
    )
    move = Transition(
        id="move",
        bundle=BUNDLE,
        event=Event.TRANSFER,
        expect=Epoch(GENERATION, 1),
        broker=B,
        commands=(command,),
        within_ms=30_000,
    )
    done = store.apply_batch(cluster, [move], generation=GENERATION, query_id="q", batch=0)
    for told in issue_commands([move], done.outcomes):
        publisher.publish([Outgoing(keys.COMMANDS, f"{cluster}/{A}", msgspec.json.encode(told))])
    reports = ((Event.HAND_OVER, A, 2), (Event.SERVE, B, 3))
    for event, actor, counter in reports:
        if event is Event.SERVE:
            JournalRelay(client, publisher).relay(cluster)
        expect = Epoch(GENERATION, counter)
        report = Transition(id=event, bundle=BUNDLE, event=event, expect=expect, actor=actor)
        assert store.apply(cluster, report).accepted
    return store


def audit(bootstrap: str, cluster: str, *more: str) -> Result:
    arguments = ["audit", "--kafka", bootstrap, "--cluster", cluster, *more]
    return CliRunner().invoke(cli.build_app(["audit"]), arguments, env={"TRIMTAB_REDIS_URL": None})


@pytest.mark.usefixtures("store")
def test_what_the_scripts_write_is_clean(
    bootstrap: str, cluster: str, redis_server: RedisServer
) -> None:
    compared = audit(bootstrap, cluster, "--redis", redis_server.url)
    assert (compared.exit_code, compared.stdout) == (0, "")
    assert "4 changes of 1 bundles and 1 commands read, 0" in compared.stderr
    alone = audit(bootstrap, cluster)
    assert (alone.exit_code, alone.stdout) == (0, "")
    assert "3 changes of 1 bundles and 1 commands read, 0" in alone.stderr


@pytest.mark.usefixtures("store")
def test_a_job_s_settings_name_kafka_and_redis(
    bootstrap: str, cluster: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    file = tmp_path / "trimtab.toml"
    file.write_text(f'redis_url = "{redis_server.url}"\n[kafka]\nbootstrap = "{bootstrap}"\n')
    compared = CliRunner().invoke(
        cli.build_app(["audit"]), ["audit", "--config", str(file), "--cluster", cluster]
    )
    assert (compared.exit_code, compared.stdout) == (0, "")
    assert "4 changes of 1 bundles and 1 commands read, 0" in compared.stderr


def test_kafka_is_read_as_the_settings_secure_it(
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("simulation.replay.recorded.TIMEOUT_SECONDS", 0.5)
    file = tmp_path / "trimtab.toml"
    file.write_text('[kafka.client]\n"security.protocol" = "ssl"\n')
    refused = audit(bootstrap, "c", "--config", str(file))
    assert refused.exit_code == 5
    assert "SSL handshake failed" in caplog.text


@pytest.mark.usefixtures("store")
def test_an_unknown_cluster_is_not_said_to_be_clean(
    bootstrap: str, cluster: str, redis_server: RedisServer
) -> None:
    for more in ((), ("--redis", redis_server.url)):
        told = audit(bootstrap, f"{cluster}-typo", *more)
        assert told.exit_code == 2
        assert (
            f"nothing is known of a cluster {cluster}-typo; there are entries of: " in told.stderr
        )
        assert cluster in told.stderr.partition("entries of: ")[2].split(", ")


def test_what_a_full_journal_left_out_is_not_reported(  # noqa: PLR0913 - both sinks and their ends
    bootstrap: str,
    cluster: str,
    client: redis.Redis,
    publisher: Publisher,
    store: OwnershipStore,
    redis_server: RedisServer,
) -> None:
    # A journal that has left something out is full until that is put back.
    client.sadd(keys.unjournalled_key(cluster), "t/n/other")
    for counter in (4, 5):
        expect = Epoch(GENERATION, counter)
        claim = Transition(
            id=f"again {counter}", bundle=BUNDLE, event=Event.CLAIM, expect=expect, actor=B
        )
        assert store.apply(cluster, claim).accepted
    meanwhile = audit(bootstrap, cluster, "--redis", redis_server.url)
    assert (meanwhile.exit_code, meanwhile.stdout) == (0, "")

    relay = JournalRelay(client, publisher)
    while relay.relay(cluster) or relay.refill(cluster):
        pass
    for more in ((), ("--redis", redis_server.url)):
        afterwards = audit(bootstrap, cluster, *more)
        assert (afterwards.exit_code, afterwards.stdout) == (0, "")
        assert "5 changes of 1 bundles" in afterwards.stderr


def test_a_record_that_was_forgotten_as_old_is_no_finding(
    bootstrap: str,
    cluster: str,
    client: redis.Redis,
    publisher: Publisher,
    redis_server: RedisServer,
) -> None:
    let_in(client, cluster, GENERATION)
    ended = Record(state=State.DELETED, epoch=Epoch(GENERATION - 1, 7), since=1)
    change = Change(cluster=cluster, bundle=BUNDLE, event=Event.RETIRE, record=ended)
    client.hset(keys.ownership_key(cluster), BUNDLE, msgspec.json.encode(ended))
    client.xadd(keys.journal_key(cluster), {"change": msgspec.json.encode(change)})
    assert Pruner(client).prune(cluster, GENERATION) == 1
    JournalRelay(client, publisher).relay(cluster)
    result = audit(bootstrap, cluster, "--redis", redis_server.url)
    # That its bundles have never covered the ring is a note.
    assert result.exit_code == 0
    assert "2 changes of 1 bundles and 0 commands read, 0 entries unreadable" in result.stderr


def test_a_forged_entry_of_the_journal_is_found(
    bootstrap: str, cluster: str, publisher: Publisher, store: OwnershipStore
) -> None:
    known = store.record(cluster, BUNDLE)
    assert known is not None
    record = Record(state=State.OWNED, epoch=Epoch(GENERATION, 3), owner=A, since=known.since)
    forged = Change(cluster=cluster, bundle=BUNDLE, event=Event.KEEP, record=record)
    publisher.publish(
        [Outgoing(keys.OWNERSHIP, f"{cluster}/{BUNDLE}", msgspec.json.encode(forged))]
    )
    result = audit(bootstrap, cluster, "--json")
    assert result.exit_code == 6
    [said] = map(json.loads, result.stdout.splitlines())
    assert (said["v"], said["kind"], said["bundle"]) == (1, "conflict", BUNDLE)
    assert [each["record"]["state"] for each in said["story"][-2:]] == ["Assigning", "Owned"]


def test_one_that_follows_tells_what_comes_and_nothing_twice(
    bootstrap: str,
    cluster: str,
    client: redis.Redis,
    store: OwnershipStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("admin.auditor.PAUSE_SECONDS", 0.01)
    records = keys.ownership_key(cluster)
    known = store.record(cluster, BUNDLE)
    assert known is not None
    with Auditor(bootstrap, client, cluster) as auditor:
        told = follow(auditor)
        for owner in ("y:8080", "z:8080"):
            foreign = msgspec.structs.replace(known, owner=owner)
            client.hset(records, BUNDLE, msgspec.json.encode(foreign))
            assert owner in next(told).detail


def test_a_record_written_beside_the_script_is_found(
    bootstrap: str,
    cluster: str,
    client: redis.Redis,
    store: OwnershipStore,
    redis_server: RedisServer,
) -> None:
    known = store.record(cluster, BUNDLE)
    assert known is not None
    foreign = msgspec.structs.replace(known, owner="z:8080")
    client.hset(keys.ownership_key(cluster), BUNDLE, msgspec.json.encode(foreign))
    result = audit(bootstrap, cluster, "--redis", redis_server.url)
    assert result.exit_code == 6
    [head, *_] = result.stdout.splitlines()
    assert head == f"unjournalled: {cluster} {BUNDLE}: Redis has {GENERATION}.4 Owned z:8080"


@pytest.mark.usefixtures("store")
def test_a_record_that_redis_has_forgotten_is_found_unless_it_is_being_rebuilt(
    bootstrap: str, cluster: str, client: redis.Redis, redis_server: RedisServer
) -> None:
    client.delete(keys.ownership_key(cluster))
    result = audit(bootstrap, cluster, "--redis", redis_server.url)
    assert result.exit_code == 6
    assert result.stdout.startswith(f"behind: {cluster} {BUNDLE}: Redis has 0.0 Free")

    client.hdel(keys.open_key(cluster), "replid")
    result = audit(bootstrap, cluster, "--redis", redis_server.url)
    assert result.exit_code == 0
    assert f"{cluster} is closed" in result.stderr


def test_a_kafka_or_redis_that_is_not_there_gives_5_and_its_address(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulation.replay.recorded.TIMEOUT_SECONDS", 0.5)
    nowhere = f"127.0.0.1:{free_port()}"
    result = audit(nowhere, "c")
    assert result.exit_code == 5
    assert nowhere in result.stderr
    result = audit(bootstrap, "c", "--redis", f"redis://{nowhere}/0")
    assert result.exit_code == 5
    assert nowhere in result.stderr
