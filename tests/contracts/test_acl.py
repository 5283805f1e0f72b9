"""What each Redis user may do, on real servers: its whole work, and nothing of the others'."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import NoPermissionError

from agent.agent import Agent
from agent.links import Links
from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from agent.migration.port import AskAgain
from agent.reports.outbox import Outbox
from agent.settings import AgentSettings
from deploy.redis_acl import PASSWORD_VARIABLE, Role, acl_line, user_name
from deploy.redis_server import RedisServer, find_installed, wheel
from sinks.errors import Misconfigured
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.answers.explanations import Explanations
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.command_streams import GROUP
from sinks.redis.journal_relay import JournalRelay
from sinks.redis.leasing.lease import Renewal
from sinks.redis.leasing.lease_scan import LeaseScan
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.pruning import Pruner
from sinks.redis.scripts import (
    forget_sessions_script,
    hints_script,
    lease_script,
    migrations_script,
    open_script,
    prune_script,
    refill_script,
    restore_script,
    topics_script,
    transition_script,
)
from sinks.redis.server.connections import redis_client
from sinks.redis.server.script import Script, run_loaded
from tests.agent.shelf import Shelf
from tests.agent.support import SESSION, Recorder
from tests.support.explanations import explanation, stored
from tests.support.migrating_broker import MigratingBroker, Storage
from tests.support.opening import indexed, let_in
from tests.support.plans import plan_for
from trimtab.migration.kept import MOST
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.model import NO_EPOCH, Epoch, InvalidName
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.hints import Hints
from trimtab.wire.lookup import AnswerKind as Answered
from trimtab.wire.ownership import Candidate, Neighbour, Record, Transition

GENERATION: Final = 5
A, B = "a:8080", "b:8080"
BUNDLE = "t/ns/0x00000000_0xffffffff"
HALVES = ("t/ns/0x00000000_0x7fffffff", "t/ns/0x7fffffff_0xffffffff")
DIVISION = Division(
    algorithm="range_equally_divide", max_rate=1e3, max_throughput=1e9, difference=0.1
)
PASSWORD = "open-sesame-open-sesame"
HASH = sha256(PASSWORD.encode()).hexdigest()
ELSEWHERE = "elsewhere"
UNKNOWN_RUN = "0" * 40

_names = count()

Login = Callable[..., redis.Redis]


@pytest.fixture(scope="module", params=[find_installed, wheel], ids=["redis", "valkey"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    program = request.param()
    if program is None:
        pytest.skip("this machine has no such server")
    # Without this every user is refused DEBUG, whatever its rights.
    more = ["enable-debug-command local"]
    with RedisServer(tmp_path_factory.mktemp("acl"), program=program, settings=more) as started:
        yield started


@pytest.fixture
def admin(server: RedisServer) -> Iterator[redis.Redis]:
    with redis_client(server.url) as connected:
        connected.acl_log_reset()
        yield connected


@pytest.fixture
def cluster() -> str:
    """Short: the names of tests have characters that matter here."""
    return f"c{next(_names)}"


@pytest.fixture
def login(server: RedisServer, admin: redis.Redis, cluster: str) -> Iterator[Login]:
    """Makes the user of a role in the cluster, and logs in as it."""
    with ExitStack() as clients:

        def logged_in(role: Role, broker: str = "") -> redis.Redis:
            name = make_user(admin, role, cluster, broker)
            url = f"redis://{quote(name, safe='')}:{PASSWORD}@127.0.0.1:{server.port}/0"
            client: redis.Redis = clients.enter_context(redis_client(url))
            return client

        yield logged_in


def make_user(admin: redis.Redis, role: Role, cluster: str, broker: str = "") -> str:
    _, name, *rules = acl_line(role, [cluster], HASH, broker).split(" ")
    execute(admin, ["ACL", "SETUSER", name, *rules])
    return name


def agent_of(
    client: redis.Redis, cluster: str, name: str, *loaded: str, broker: Recorder | None = None
) -> Agent:
    """Turned by hand; its reports stay in the outbox."""
    own = AgentSettings(cluster, name, SESSION, longest_wait=0.001)
    return Agent(broker or Recorder(*loaded), own, Links.of(own, client, Outbox(Shelf)))


def ask(
    job: redis.Redis,
    cluster: str,
    event: Event,
    to: str | None,
    told: dict[str, CommandKind],
    *bundles: str,
) -> None:
    """Of BUNDLE, or of one named, perhaps with its neighbour."""
    store = OwnershipStore(job)
    bundle, *above = bundles or (BUNDLE,)
    epochs = [r.epoch if (r := store.record(cluster, b)) else NO_EPOCH for b in (bundle, *above)]
    name = f"{cluster}/q/{next(_names)}"
    commands = tuple(
        Command(
            id=f"{name}/{kind.value}",
            cluster=cluster,
            broker=receiver,
            kind=kind,
            bundle=bundle,
            destination=to,
            division=DIVISION if kind is CommandKind.SPLIT else None,
            neighbour=above[0] if above else None,
        )
        for receiver, kind in told.items()
    )
    request = Transition(
        id=name,
        bundle=bundle,
        event=event,
        expect=epochs[0],
        broker=to,
        commands=commands,
        neighbour=Neighbour(above[0], epochs[1]) if above else None,
        within_ms=30_000,
    )
    outcomes = store.apply_batch(
        cluster, [request], generation=GENERATION, query_id="q", batch=next(_names)
    ).outcomes
    assert outcomes[0].accepted, outcomes


class Carried(Publisher):
    """Takes what the relay carries; there is no Kafka."""

    def __init__(self) -> None:
        self.topics = Counter[str]()

    def publish(self, records: Iterable[Outgoing]) -> None:
        self.topics.update(record.topic for record in records)


def execute(client: redis.Redis, command: Sequence[str]) -> object:
    # Any: redis-py leaves this one without annotations.
    untyped: Any = client
    return untyped.execute_command(*command)


def denials(admin: redis.Redis) -> list[object]:
    """What the server refused to users since the test began."""
    return [(entry["username"], entry["object"]) for entry in admin.acl_log()]


def test_job_and_brokers_do_their_whole_work_and_are_refused_nothing(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a, b = login(Role.JOB), login(Role.BROKER, A), login(Role.BROKER, B)
    gate = let_in(job, cluster, GENERATION)
    source, destination = agent_of(a, cluster, A, BUNDLE), agent_of(b, cluster, B)

    source.turn()
    destination.turn()
    ask(job, cluster, Event.TRANSFER, B, {A: CommandKind.TRANSFER, B: CommandKind.PREPARE})
    for agent in (destination, source, destination):
        agent.turn()
    assert (source.serves(BUNDLE), destination.serves(BUNDLE)) == (False, True)

    ask(job, cluster, Event.UNLOAD, None, {B: CommandKind.UNLOAD})
    destination.turn()
    candidates = (Candidate(A, 0.1), Candidate(B, 0.9))
    hints = Hints(
        round=1, candidates=candidates, each=0.01, evenly=True, groups={"g": ("t/ns", "t/other")}
    )
    gate.set_hints(cluster, GENERATION, hints)
    lookups = Lookup(LookupSettings(cluster, B, patience=0.0), b, np.random.default_rng(1))
    assert lookups.lookup("persistent://t/ns/orders").kind is Answered.RETRY
    source.turn()
    assert lookups.lookup("persistent://t/ns/orders").broker == A

    assert set(LeaseScan(job).alive(cluster, GENERATION, [A, B]) or ()) == {A, B}
    carried = Carried()
    assert JournalRelay(job, carried).relay(cluster) == carried.topics[keys.OWNERSHIP] > 0
    # The hand-over's and the lookup's.
    assert carried.topics[keys.COMMANDS] == 2
    assert Leases(a).renew(cluster, A, SESSION, 0).renewal is Renewal.RELEASED
    for number in (1, 2):
        told = stored(cluster, number, explanation(BUNDLE, number), keep=1)
        Explanations(job).write(GENERATION, told)
    KeptPlans(job).write([plan_for(cluster, "1-0001")], 1)
    assert denials(admin) == []


def test_a_broker_divides_and_merges_its_bundles_and_is_refused_nothing(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a = login(Role.JOB), login(Role.BROKER, A)
    let_in(job, cluster, GENERATION)
    agent = agent_of(a, cluster, A, BUNDLE)
    agent.turn()
    ask(job, cluster, Event.SPLIT, None, {A: CommandKind.SPLIT})
    agent.turn()
    assert [agent.serves(each) for each in (BUNDLE, *HALVES)] == [False, True, True]
    ask(job, cluster, Event.MERGE, None, {A: CommandKind.MERGE}, *HALVES)
    agent.turn()
    assert [agent.serves(each) for each in (BUNDLE, *HALVES)] == [True, False, False]
    assert denials(admin) == []


def test_a_broker_takes_topics_to_another_cluster_and_is_refused_nothing(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a, storage = login(Role.JOB), login(Role.BROKER, A), Storage()
    let_in(job, cluster, GENERATION)
    storage.topic("persistent://t/ns/one")
    agent = agent_of(a, cluster, A, BUNDLE, broker=MigratingBroker(storage, BUNDLE))
    agent.turn()
    it = Migration("m", cluster, "t/ns", Target(serviceUrl="http://green:8080"), check=1e-9)
    assert len(Migrations(job).write(cluster, GENERATION, [it])) == 1
    for _ in range(4):
        agent.turn()
    assert Migrations(login(Role.READER)).counts(cluster, "m")["t/ns"].migrated == 1
    assert storage.blue == {}
    with pytest.raises(AskAgain):
        agent.green_for("persistent://t/ns/new")
    agent.turn()
    assert agent.green_for("persistent://t/ns/new") == it.target
    ended = MigrationState.ROLLED_BACK
    many = [Migration(f"old-{n}", cluster, f"t/{n}", it.target, ended, at=n) for n in range(MOST)]
    Migrations(job).write(cluster, GENERATION, many)
    assert len(Migrations(login(Role.READER)).read(cluster)) == MOST
    assert denials(admin) == []


def test_a_broker_may_ask_what_is_noted_of_replicas(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    """HGET was refused, which the scripts need where a replica is near: no lease was renewed."""
    broker, key = login(Role.BROKER, A), keys.replicas_key(cluster)
    for command in (f"HGET {key} asked", f"HMGET {key} on", f"EXISTS {key}", f"HSET {key} on x"):
        execute(broker, command.split(" "))
    assert denials(admin) == []


def test_what_a_full_journal_left_out_is_put_back_and_seen_by_the_same_users(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a, reader = login(Role.JOB), login(Role.BROKER, A), login(Role.READER)
    let_in(job, cluster, GENERATION)
    # A journal that has left something out is full until that is put back.
    admin.sadd(keys.unjournalled_key(cluster), "t/ns/other")
    agent_of(a, cluster, A, BUNDLE).turn()
    ask(job, cluster, Event.UNLOAD, None, {A: CommandKind.UNLOAD})

    left_out = set(reader.sscan_iter(keys.unjournalled_key(cluster)))
    assert left_out == {b"t/ns/other", BUNDLE.encode()}
    assert reader.xlen(keys.journal_key(cluster)) == 0
    assert JournalRelay(job, Carried()).refill(cluster) == 1
    assert reader.xlen(keys.journal_key(cluster)) == 1
    assert denials(admin) == []


def test_the_job_forgets_what_ended_long_ago(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job = login(Role.JOB)
    let_in(job, cluster, GENERATION)
    ended = Record(state=State.DELETED, epoch=Epoch(GENERATION - 1, 7))
    admin.hset(keys.ownership_key(cluster), BUNDLE, msgspec.json.encode(ended))
    admin.hset(keys.sessions_key(cluster), A, "1")
    pruner = Pruner(job)
    assert pruner.prune(cluster, GENERATION) == 1
    assert [pruner.forget_sessions(cluster, GENERATION) for _ in range(2)] == [0, 1]
    assert denials(admin) == []


def test_a_store_that_forgot_is_rebuilt_by_the_same_users(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a = login(Role.JOB), login(Role.BROKER, A)
    admin.script_flush()
    leases = Leases(a)
    record = Record(state=State.OWNED, epoch=Epoch(4, 7), owner=A)

    unscripted = leases.renew(cluster, A, SESSION, 5_000)
    assert unscripted.renewal is Renewal.ASSERT
    said = Assertion(records={BUNDLE: record})
    assert leases.renew(cluster, A, SESSION, 5_000, said).renewal is Renewal.ASSERTED

    gate = ClusterGate(job)
    closure = gate.open(cluster, GENERATION)
    assert closure is not None
    assert leases.renew(cluster, A, SESSION, 5_000).renewal is Renewal.ASSERTED
    heard = gate.sources.assertions(cluster, closure.history)
    assert heard == {A: said}
    assert gate.restore(cluster, GENERATION, heard[A].records, {BUNDLE}) == 1
    gate.note_owned(cluster, GENERATION, [BUNDLE])
    assert gate.open(cluster, GENERATION, closure.history) is None
    assert gate.is_open(cluster)
    assert OwnershipStore(a).records_of(cluster, A) == {BUNDLE: record}
    assert denials(admin) == []


@pytest.mark.parametrize(
    ("role", "scripts"),
    [
        (Role.BROKER, [transition_script, lease_script, topics_script]),
        (
            Role.JOB,
            [
                transition_script,
                open_script,
                restore_script,
                hints_script,
                migrations_script,
                refill_script,
                prune_script,
                forget_sessions_script,
            ],
        ),
    ],
)
def test_every_caller_may_do_what_its_script_does(
    role: Role, scripts: list[Callable[[], Script]]
) -> None:
    """So a new command in a script fails here by its name, whatever paths other tests take."""
    done = {name for script in scripts for name in re.findall(r'call\("(\w+)"', script().text)}
    line = acl_line(role, ["c"], HASH, A if role is Role.BROKER else "")
    granted = set(re.findall(r"\+(\w+)", line))
    assert {name.lower() for name in done} - granted == set()


WORDS: Final[dict[str, Callable[[str], str]]] = {
    "own_lease": lambda c: keys.lease_key(c, A),
    "lease": lambda c: keys.lease_key(c, B),
    "leases": lambda c: keys.lease_key(c, ""),
    "own_assertion": lambda c: keys.assertion_key(c, UNKNOWN_RUN, A),
    "assertion": lambda c: keys.assertion_key(c, UNKNOWN_RUN, B),
    "assertions": keys.assertions_prefix,
    "own_commands": lambda c: keys.command_stream(c, A),
    "commands": lambda c: keys.command_stream(c, B),
    "open": keys.open_key,
    "replicas": keys.replicas_key,
    "ownership": keys.ownership_key,
    "journal": keys.journal_key,
    "unjournalled": keys.unjournalled_key,
    "applied": keys.applied_key,
    "bundles": keys.bundles_key,
    "hints": keys.hints_key,
    "placed": keys.placed_key,
    "tallies": keys.tallies_key,
    "own_urls": lambda c: keys.urls_key(c, A),
    "urls": lambda c: keys.urls_key(c, B),
    "groups": keys.groups_key,
    "whys": keys.whys_key,
    "explained": keys.explained_key,
    "other_lease": lambda _: keys.lease_key(ELSEWHERE, A),
    "other_assertion": lambda _: keys.assertion_key(ELSEWHERE, UNKNOWN_RUN, A),
    "other_commands": lambda _: keys.command_stream(ELSEWHERE, A),
    "other_open": lambda _: keys.open_key(ELSEWHERE),
    "other_ownership": lambda _: keys.ownership_key(ELSEWHERE),
    "other_journal": lambda _: keys.journal_key(ELSEWHERE),
    "other_bundles": lambda _: keys.bundles_key(ELSEWHERE),
    "lease_script": lambda _: lease_script().sha,
    "transition_script": lambda _: transition_script().sha,
}


def words(command: str, cluster: str) -> list[str]:
    """A command with the keys of a cluster; ``lease`` is b's, ``own_lease`` is a's."""
    return command.format(**{word: told(cluster) for word, told in WORDS.items()}).split(" ")


ADMINISTRATION: Final = (
    "EVAL return 0",
    "EVAL_RO return 0",
    "SCRIPT FLUSH",
    "SCRIPT KILL",
    "SCRIPT EXISTS x",
    "FUNCTION LOAD x",
    "FUNCTION FLUSH",
    "FUNCTION DELETE x",
    "FUNCTION LIST",
    "FCALL f 0",
    "CONFIG GET *",
    "CONFIG SET maxmemory 1",
    "CONFIG REWRITE",
    "CONFIG RESETSTAT",
    "KEYS *",
    "RANDOMKEY",
    "DBSIZE",
    "FLUSHALL",
    "FLUSHDB",
    "SWAPDB 0 1",
    "SELECT 1",
    "DEBUG SLEEP 0",
    "SHUTDOWN NOSAVE",
    "SAVE",
    "BGSAVE",
    "BGREWRITEAOF",
    "REPLICAOF NO ONE",
    "FAILOVER",
    "MODULE LIST",
    "ACL LIST",
    "ACL SETUSER x on nopass ~* +@all",
    "ACL LOG",
    "MONITOR",
    "CLIENT LIST",
    "CLIENT KILL ID 1",
    "CLIENT PAUSE 1",
    "SLOWLOG GET",
    "LATENCY RESET",
    "INFO",
    "PUBLISH channel x",
    "SPUBLISH channel x",
    "SUBSCRIBE channel",
    "PSUBSCRIBE *",
    "PUBSUB CHANNELS",
)

ELSEWHERE_READ: Final = (
    "HGET {other_ownership} x",
    "GET {other_lease}",
    "EXISTS {other_lease}",
    "GET {other_assertion}",
    "XRANGE {other_commands} - +",
)

ELSEWHERE_WRITTEN: Final = (
    "HSET {other_ownership} x y",
    "HSET {other_open} generation 9",
    "ZADD {other_bundles} 0 x",
    "ZREM {other_bundles} x",
    "XADD {other_journal} * change x",
    "XADD {other_commands} * command x",
    "SET {other_lease} 1 PX 1000",
    "SET {other_assertion} x",
    "DEL {other_lease}",
)

REMOVAL: Final = (
    "DEL {ownership}",
    "UNLINK {ownership}",
    "DEL {own_lease}",
    "GETDEL {own_lease}",
    "DEL {own_commands}",
    "HDEL {ownership} x",
    "HDEL {open} replid",
    "ZREMRANGEBYLEX {bundles} - +",
    "ZREMRANGEBYRANK {bundles} 0 -1",
    "ZREM {ownership} x",
    "ZPOPMIN {bundles}",
    "XTRIM {journal} MAXLEN 0",
    "XTRIM {own_commands} MAXLEN 0",
    "EXPIRE {ownership} 1",
    "EXPIRE {journal} 1",
    "EXPIRE {own_lease} 1",
    "PEXPIRE {own_commands} 1",
    "PEXPIRE {lease} 1",
    "PERSIST {own_lease}",
    "RENAME {ownership} {own_lease}",
    "COPY {own_lease} {lease}",
    "MOVE {ownership} 1",
    "RESTORE {own_lease} 0 x",
    "SORT {ownership} STORE {own_lease}",
    "XGROUP DESTROY {own_commands} agent",
    "XGROUP SETID {own_commands} agent 0",
)

DENIED_TO_BROKERS: Final = (
    *ADMINISTRATION,
    *ELSEWHERE_READ,
    *ELSEWHERE_WRITTEN,
    *REMOVAL,
    "SCRIPT LOAD return(0)",
    "SCAN 0",
    "EVALSHA_RO x 0 ",
    "SET {lease} 1 PX 1000",
    "SET {leases} 1",
    "APPEND {own_lease} 1",
    "SET {assertion} x",
    "GET {assertion}",
    "EXISTS {assertion}",
    "XREADGROUP GROUP agent b STREAMS {commands} >",
    "XREADGROUP GROUP agent a STREAMS {own_commands} {commands} > >",
    "XREAD STREAMS {commands} 0",
    "XRANGE {commands} - +",
    "XLEN {commands}",
    "XINFO STREAM {commands}",
    "XACK {commands} agent 0-1",
    "XCLAIM {commands} agent a 0 0-1",
    "XAUTOCLAIM {commands} agent a 0 0",
    "XGROUP CREATE {commands} agent 0 MKSTREAM",
    "XDEL {journal} 0-1",
    "XDEL {commands} 0-1",
    "XRANGE {journal} - +",
    "SPOP {unjournalled}",
    "SREM {unjournalled} x",
    "SMEMBERS {unjournalled}",
    "HSET {open} generation 9",
    "HSET {applied} q x",
    "HGET {applied} q",
    "HSET {placed} a 0",
    "DEL {placed}",
    "DEL {tallies}",
    "SET {urls} x",
    "DEL {own_urls}",
    "HSET {groups} t/ns g",
    "DEL {groups}",
    "SET {hints} x",
    "HGET {whys} x",
    "HSET {whys} x 1",
    "ZADD {explained} 1 1",
    "HSET {own_lease} x y",
    "EVALSHA {lease_script} 3 {open} {lease} {assertions} 1 1000 a:8080",
    "EVALSHA {lease_script} 3 {other_open} {own_lease} {assertions} 1 1000 a:8080",
)


@pytest.mark.parametrize("command", DENIED_TO_BROKERS)
def test_a_broker_may_not(login: Login, cluster: str, command: str) -> None:
    with pytest.raises(NoPermissionError):
        execute(login(Role.BROKER, A), words(command, cluster))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("HSET {ownership} t/ns/0x00000000_0xffffffff {{}}", id="write any record"),
        pytest.param("XADD {journal} MAXLEN 0 * change x", id="write the journal, and empty it"),
        pytest.param("XADD {commands} MAXLEN 0 * command x", id="write and empty other streams"),
        pytest.param("EXPIRE {commands} 1", id="let other streams end"),
        pytest.param("XDEL {own_commands} 0-1", id="delete its own commands"),
        pytest.param("SADD {unjournalled} x", id="have a record journalled again"),
        pytest.param("ZADD {bundles} 0 x", id="add to the index"),
        pytest.param("ZREM {bundles} x", id="take from the index"),
        pytest.param("HINCRBY {placed} a:8080 9", id="distort what was placed"),
        pytest.param("HINCRBY {tallies} x 9", id="distort what was placed of a namespace"),
        pytest.param("SET {own_lease} 1", id="hold its own lease for ever"),
        pytest.param("SET {own_assertion} x", id="say anything as itself"),
        pytest.param("GET {lease}", id="read leases"),
        pytest.param("HSCAN {ownership} 0", id="read records"),
    ],
)
def test_a_broker_is_trusted_not_to(login: Login, cluster: str, command: str) -> None:
    """A script runs with its caller's rights: what it writes, its callers could write without it.

    docs/security.md lists the same, and what watches it.
    """
    execute(login(Role.BROKER, A), words(command, cluster))


def test_scripts_of_the_job_give_a_broker_no_rights(login: Login, cluster: str) -> None:
    job, broker = login(Role.JOB), login(Role.BROKER, A)
    let_in(job, cluster, GENERATION).set_hints(
        cluster, GENERATION, Hints(round=1, candidates=(), each=0.0)
    )
    ClusterGate(job).restore(cluster, GENERATION, {}, set())
    job.script_load(restore_script().text)
    own = keys.open_key(cluster)
    with pytest.raises(Misconfigured):
        run_loaded(
            broker, open_script(), [own, keys.replicas_key(cluster)], ["9", "", "1000", "", "0", ""]
        )
    written = keys.hints_key, keys.placed_key, keys.tallies_key, keys.groups_key
    names = [own, *(key(cluster) for key in written)]
    with pytest.raises(Misconfigured):
        run_loaded(broker, hints_script(), names, [str(GENERATION), "{}", ""])
    # The job may do this to an unowned bundle: only the broker's rights stop it.
    posed = Transition(id="x", bundle=BUNDLE, event=Event.QUARANTINE, expect=NO_EPOCH)
    with pytest.raises(Misconfigured):
        OwnershipStore(broker).apply_batch(
            cluster, [posed], generation=GENERATION, query_id="q", batch=1
        )
    assert OwnershipStore(job).records(cluster) == {}


DENIED_TO_THE_JOB: Final = (
    *ADMINISTRATION,
    *ELSEWHERE_READ,
    *ELSEWHERE_WRITTEN,
    "SET {lease} 1 PX 1000",
    "DEL {lease}",
    "PEXPIRE {lease} 1",
    "SET {assertion} x",
    "DEL {ownership}",
    "DEL {journal}",
    "XTRIM {journal} MAXLEN 0",
    "DEL {unjournalled}",
    "XREADGROUP GROUP agent b STREAMS {commands} >",
    "XDEL {commands} 0-1",
    "DEL {commands}",
    "RENAME {ownership} {applied}",
    "EXPIRE {ownership} 1",
    "EXPIRE {hints} 1",
    "EXPIRE {journal} 1",
    "DEL {hints}",
    "DEL {applied}",
    "EXPIRE {applied} 1",
    "ZREM {ownership} x",
)


@pytest.mark.parametrize("command", DENIED_TO_THE_JOB)
def test_the_job_may_not(login: Login, cluster: str, command: str) -> None:
    with pytest.raises(NoPermissionError):
        execute(login(Role.JOB), words(command, cluster))


DENIED_TO_READERS: Final = (
    *ADMINISTRATION,
    *ELSEWHERE_READ,
    *ELSEWHERE_WRITTEN,
    *REMOVAL,
    "SCRIPT LOAD return(0)",
    "SCAN 0",
    "EVALSHA {transition_script} 1 {open}",
    "SET {lease} 1",
    "SET {hints} x",
    "HSET {whys} x 1",
    "DEL {explained}",
    "SET {assertion} x",
    "HSET {ownership} x y",
    "HINCRBY {placed} a 1",
    "ZADD {bundles} 0 x",
    "ZREM {bundles} x",
    "XADD {journal} * change x",
    "XDEL {journal} 0-1",
    "SADD {unjournalled} x",
    "SPOP {unjournalled}",
    "XADD {commands} * command x",
    "XACK {commands} agent 0-1",
    "XDEL {commands} 0-1",
    "EXPIRE {commands} 1",
    "XREADGROUP GROUP agent b STREAMS {commands} >",
    "XGROUP CREATE {commands} agent 0 MKSTREAM",
    "GETEX {lease} PERSIST",
    "GETSET {lease} 1",
)


@pytest.mark.parametrize("command", DENIED_TO_READERS)
def test_a_reader_may_not(login: Login, cluster: str, command: str) -> None:
    with pytest.raises(NoPermissionError):
        execute(login(Role.READER), words(command, cluster))


def test_a_reader_sees_everything_of_its_cluster(
    login: Login, admin: redis.Redis, cluster: str
) -> None:
    job, a, reader = login(Role.JOB), login(Role.BROKER, A), login(Role.READER)
    let_in(job, cluster, GENERATION)
    agent_of(a, cluster, A, BUNDLE).turn()

    assert list(OwnershipStore(reader).records(cluster)) == [BUNDLE]
    assert Leases(reader).holds(cluster, A)
    assert indexed(reader, cluster) == [BUNDLE]
    assert reader.xlen(keys.journal_key(cluster)) == 1
    assert reader.hgetall(keys.open_key(cluster))[b"generation"] == b"5"
    Explanations(job).write(GENERATION, stored(cluster, 1, explanation(BUNDLE)))
    assert Explanations(reader).read(cluster, BUNDLE).explanation == explanation(BUNDLE)
    KeptPlans(job).write([plan_for(cluster, "1-0001")], 1)
    assert [plan.id for plan in KeptPlans(reader).list(cluster)] == ["1-0001"]
    assert denials(admin) == []


@pytest.mark.parametrize(
    ("mine", "like_it"),
    [
        pytest.param("a*", "ab", id="star"),
        pytest.param("a?", "ab", id="question mark"),
        pytest.param("[ab]", "a", id="class"),
        pytest.param("[^x]", "a", id="negated class"),
        pytest.param("[a-c]", "b", id="range"),
        pytest.param("a\\*", "a*", id="escape"),
        pytest.param("*", "b:8080", id="everybody"),
        pytest.param("a", "x:a", id="end of another's name"),
        pytest.param("a:8080", "a:80801", id="beginning of another's name"),
    ],
)
def test_a_name_that_looks_like_a_pattern_is_only_itself(
    login: Login, cluster: str, mine: str, like_it: str
) -> None:
    broker = login(Role.BROKER, mine)
    own, other = keys.lease_key(cluster, mine), keys.lease_key(cluster, like_it)
    broker.set(own, "1", px=1000)
    broker.set(keys.assertion_key(cluster, UNKNOWN_RUN, mine), "x")
    broker.xgroup_create(keys.command_stream(cluster, mine), GROUP, id="0", mkstream=True)
    for forbidden in (
        ["SET", other, "1", "PX", "1000"],
        ["SET", keys.assertion_key(cluster, UNKNOWN_RUN, like_it), "x"],
        ["XREADGROUP", "GROUP", GROUP, mine, "STREAMS", keys.command_stream(cluster, like_it), ">"],
    ):
        with pytest.raises(NoPermissionError):
            execute(broker, forbidden)


NAMES = st.text("ab01*?[]^-\\:.!~@#%|&$,;<>", min_size=1, max_size=6)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(mine=NAMES, other=NAMES, of_cluster=NAMES)
def test_no_name_gives_a_right_to_what_has_another_name(
    admin: redis.Redis, mine: str, other: str, of_cluster: str
) -> None:
    user = make_user(admin, Role.BROKER, of_cluster, mine)
    try:
        for broker, of in ((mine, of_cluster), (other, of_cluster), (mine, other)):
            dry = ["ACL", "DRYRUN", user, "SET", keys.lease_key(of, broker), "1"]
            answer = execute(admin, dry)
            assert (answer == b"OK") == ((broker, of) == (mine, of_cluster))
    finally:
        admin.acl_deluser(user)


@pytest.mark.parametrize("broker", ["a)", "(a", 'a"', "a'b", "a b", "a/b", ""])
def test_a_name_that_an_acl_cannot_hold_is_refused(broker: str) -> None:
    with pytest.raises(InvalidName):
        acl_line(Role.BROKER, ["c"], HASH, broker)


def test_one_job_may_serve_two_clusters(
    server: RedisServer, admin: redis.Redis, cluster: str
) -> None:
    both = [cluster, f"{cluster}-too"]
    _, name, *rules = acl_line(Role.JOB, both, HASH).split(" ")
    execute(admin, ["ACL", "SETUSER", name, *rules])
    with redis_client(f"redis://{name}:{PASSWORD}@127.0.0.1:{server.port}/0") as job:
        for each in both:
            let_in(job, each, GENERATION)
            assert ClusterGate(job).is_open(each)


def test_the_file_that_the_command_writes_makes_the_users_and_holds_no_password(
    server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    lines = [f"user default on #{HASH} ~* &* +@all"]
    for role in (["job"], ["reader"], ["broker", "--broker", "a*:8080"]):
        command = [sys.executable, "-m", "deploy.redis_acl", *role, "--cluster", "c"]
        done = subprocess.run(
            command, input=f"{PASSWORD}\n", capture_output=True, text=True, check=True
        )
        assert PASSWORD not in done.stdout + done.stderr
        lines.append(done.stdout.strip())
    (tmp_path / "users.acl").write_text("\n".join([*lines, ""]))
    program = Path(server._process.command[0])
    more = [f'aclfile "{tmp_path / "users.acl"}"']

    with RedisServer(tmp_path, program=program, settings=more) as own:
        user = quote(user_name(Role.BROKER, ["c"], "a*:8080"), safe="")
        with redis_client(f"redis://{user}:{PASSWORD}@127.0.0.1:{own.port}/0") as broker:
            broker.set(keys.lease_key("c", "a*:8080"), "1", px=1000)
            with pytest.raises(NoPermissionError):
                broker.set(keys.lease_key("c", "ab:8080"), "1", px=1000)
        with (
            redis_client(f"redis://{user}:wrong@127.0.0.1:{own.port}/0") as stranger,
            pytest.raises(Misconfigured, match="refuses us"),
        ):
            OwnershipStore(stranger).ping()


def test_a_short_password_is_refused_without_being_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.redis_acl", "job", "--cluster", "c"],
        env={**os.environ, PASSWORD_VARIABLE: "canary"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "canary" not in done.stdout + done.stderr
