"""What a broker answers when it is asked for a topic, by the state of its bundle's record."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest
from redis import Redis
from structlog.testing import capture_logs

from agent.commands.obeying import Obeyed
from agent.lookup import edges
from agent.lookup.claiming import HINTS_FOR_S
from agent.lookup.server import OPEN_FOR_S, Lookup
from agent.lookup.settling import LookupSettings
from deploy.redis_server import RedisServer
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from tests.agent.looking_up import HERE, NAMESPACE, STANDING, TOPIC, WHOLE, Scene, owned
from tests.support.opening import let_in, server_ms
from trimtab.model import FULL_RANGE_END, Epoch, HashRange
from trimtab.ownership import Event, State
from trimtab.store.ring import position
from trimtab.wire.command import Command
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.hints import Hints
from trimtab.wire.keys import bundles_key, command_stream, hints_key, open_key, placed_key
from trimtab.wire.lookup import Answer, AnswerKind, Avoid, Cause
from trimtab.wire.ownership import Candidate, Neighbour, Record, Transition

A, B, C = "a:8080", "b:8080", "c:8080"


@pytest.fixture
def scene(client: Redis, cluster: str) -> Scene:
    return Scene(client, cluster)


def said(answer: Answer) -> tuple[AnswerKind, str | None, Cause | None]:
    return answer.kind, answer.broker, answer.cause


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.OWNED, (AnswerKind.CONNECT, A, None)),
        (State.RELEASING, (AnswerKind.CONNECT, A, None)),
        (State.SPLITTING, (AnswerKind.CONNECT, A, None)),
        (State.MERGING, (AnswerKind.CONNECT, A, None)),
        (State.ASSIGNING, (AnswerKind.RETRY, None, Cause.HAND_OVER)),
        (State.FREE, (AnswerKind.CONNECT, C, None)),
        (State.QUARANTINED, (AnswerKind.FAILED, None, Cause.QUARANTINED)),
        (State.DELETED, (AnswerKind.FAILED, None, Cause.UNKNOWN_NAMESPACE)),
    ],
    ids=lambda value: value if isinstance(value, State) else "",
)
def test_an_answer_follows_from_the_state(
    scene: Scene, state: State, expected: tuple[AnswerKind, str | None, Cause | None]
) -> None:
    scene.obeying(A, C)
    scene.hint(C)
    named = state not in {State.FREE, State.DELETED, State.QUARANTINED}
    aim = B if state is State.RELEASING else None
    scene.put(Record(state=state, epoch=STANDING, owner=A if named else None, destination=aim))

    assert said(scene.lookup().lookup(TOPIC)) == expected


def test_an_answer_names_bundle_and_epoch_and_is_authoritative(scene: Scene) -> None:
    scene.put(owned(A))

    expected = Answer(
        kind=AnswerKind.CONNECT, bundle=WHOLE, broker=A, epoch=STANDING, authoritative=True
    )
    assert scene.lookup().lookup(TOPIC) == expected


def test_behind_a_proxy_the_owner_is_the_logical_address(scene: Scene) -> None:
    scene.put(owned(A))

    answer = scene.lookup(proxied=True).lookup(TOPIC)

    assert (answer.broker, answer.proxied) == (A, True)


def test_an_owned_bundle_costs_one_command(scene: Scene, client: Redis) -> None:
    scene.put(owned(A))
    lookup = scene.lookup()
    lookup.lookup(TOPIC)

    def commands(lookups: int) -> int:
        before = client.info("stats")["total_commands_processed"]
        for _ in range(lookups):
            lookup.lookup(TOPIC)
        return int(client.info("stats")["total_commands_processed"]) - int(before)

    assert commands(10) - commands(0) == 10


# No broker owns it


def test_an_unloaded_bundle_goes_where_the_plan_proposes(scene: Scene) -> None:
    """However busy that broker is in the hints: the plan has counted more than they show."""
    scene.obeying(A, B, C)
    scene.hint_loads({A: 0.1, B: 0.2, C: 0.9}, proposed={WHOLE: C})
    scene.put(Record(state=State.FREE, epoch=STANDING))
    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.CONNECT, C, None)


def test_where_the_proposed_broker_is_dead_another_gets_the_bundle(scene: Scene) -> None:
    scene.obeying(A, C)
    scene.hint_loads({A: 0.1, C: 0.9}, proposed={WHOLE: C})
    scene.die(C)
    scene.put(Record(state=State.FREE, epoch=STANDING))
    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.CONNECT, A, None)


def test_a_bundle_that_is_unloaded_at_its_owner_is_served_by_the_next_ones_choice(
    scene: Scene,
) -> None:
    """From the job's request to the answer: the owner stops serving, and is asked no more."""
    scene.obeying(A, B)
    scene.hint_loads({A: 0.1, B: 0.5}, proposed={WHOLE: B})
    scene.put(owned(A))
    unload = Transition(
        id="unload",
        bundle=WHOLE,
        event=Event.UNLOAD,
        expect=STANDING,
        commands=(
            Command(
                id="unload/unload", cluster=scene.cluster, broker=A, kind=Order.UNLOAD, bundle=WHOLE
            ),
        ),
        within_ms=30_000,
    )
    store = OwnershipStore(scene.client)
    store.apply_batch(scene.cluster, [unload], generation=1, query_id="q", batch=1)
    scene.sites[A].obey()
    assert [change.record.state for change in scene.accepted(Event.RELEASE)] == [State.FREE]
    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.CONNECT, B, None)


@pytest.mark.parametrize("known", [True, False], ids=["free", "without a record"])
def test_the_first_lookup_of_a_bundle_gives_it_to_a_broker_that_then_serves(
    scene: Scene, known: bool
) -> None:
    scene.obeying(A, B)
    scene.hint(A, B)
    scene.put(Record(state=State.FREE, epoch=STANDING) if known else None)

    answer = scene.lookup().lookup(TOPIC)

    assert answer.broker in {A, B}
    assert scene.sites[answer.broker].holdings.serves(WHOLE)
    record = OwnershipStore(scene.client).record(scene.cluster, WHOLE)
    assert record is not None
    assert (record.state, record.owner, record.epoch) == (State.OWNED, answer.broker, answer.epoch)


def test_only_the_chosen_broker_is_told(scene: Scene, client: Redis) -> None:
    scene.obeying(A, B)
    scene.hint(A, B)
    scene.put(None)

    chosen = scene.lookup().lookup(TOPIC).broker

    left = {each: client.xlen(command_stream(scene.cluster, each)) for each in (A, B)}
    told = {each: left[each] + len(scene.sites[each].seen) for each in (A, B)}
    assert told == {A: int(chosen == A), B: int(chosen == B)}


def test_candidates_without_a_lease_are_passed_over(scene: Scene) -> None:
    scene.obeying(C)
    scene.hint("dead-1:8080", "dead-2:8080", A, B, C)
    scene.put(None)

    assert scene.lookup().lookup(TOPIC).broker == C


def test_a_broker_that_cannot_load_the_bundle_is_not_asked_again(scene: Scene) -> None:
    scene.obeying(A)
    scene.hint(A)
    scene.sites[A].broker.broken = True
    scene.put(None)

    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.RETRY, None, Cause.NO_CANDIDATE)
    assert len(scene.accepted(Event.ASSIGN)) == 1


def test_another_broker_takes_what_one_cannot_load(scene: Scene) -> None:
    scene.obeying(A, B)
    scene.hint(A, B)
    scene.sites[A].broker.broken = True
    scene.free(20)
    lookup = scene.lookup()

    assert {lookup.lookup(topic).broker for topic in topics()} == {B}
    assert {change.record.owner for change in scene.accepted(Event.ASSIGN)} == {A, B}


def test_newer_hints_are_read(scene: Scene) -> None:
    scene.obeying(A, B)
    scene.hint(A)
    left, right = scene.free(2)
    in_each = [next(t for t in topics() if bundle_of(t, [left, right]) == b) for b in (left, right)]
    lookup = scene.lookup()

    assert lookup.lookup(in_each[0]).broker == A
    scene.hint(B)
    scene.now += HINTS_FOR_S
    assert lookup.lookup(in_each[1]).broker == B


@pytest.mark.parametrize(
    ("hinted", "nowhere", "cause"),
    [
        pytest.param(None, (), Cause.NO_HINTS, id="no round yet"),
        pytest.param((), (), Cause.NO_CANDIDATE, id="no broker"),
        pytest.param((A,), (), Cause.NO_CANDIDATE, id="all dead"),
        pytest.param((C,), (NAMESPACE,), Cause.NO_CANDIDATE, id="isolated"),
    ],
)
def test_without_anybody_to_give_it_to_the_client_tries_later(
    scene: Scene, hinted: Sequence[str] | None, nowhere: Sequence[str], cause: Cause
) -> None:
    scene.obeying(C)
    if hinted is not None:
        scene.hint(*hinted, nowhere=nowhere)
    scene.put(None)

    answer = scene.lookup().lookup(TOPIC)

    assert said(answer) == (AnswerKind.RETRY, None, cause)
    assert answer.after_ms > 0


@pytest.mark.parametrize("kind", ["no hints", "no text", "no string"])
def test_spoiled_hints_are_named_and_heal_with_the_next(scene: Scene, kind: str) -> None:
    scene.obeying(A)
    scene.put(None)
    key = hints_key(scene.cluster)
    if kind == "no string":
        scene.client.rpush(key, "x")
    else:
        scene.client.set(key, {"no hints": b'{"round":1}', "no text": b"\xff"}[kind])
    lookup = scene.lookup()

    answer = lookup.lookup(TOPIC)

    assert said(answer) == (AnswerKind.RETRY, None, Cause.NO_HINTS)
    assert key in str(answer.says)
    hints = Hints(round=2, candidates=(Candidate(A, 0.5),), each=0.1)
    ClusterGate(scene.client).set_hints(scene.cluster, 1, hints)
    assert lookup.lookup(TOPIC).broker == A


@pytest.mark.parametrize("kind", ["a word", "very long", "no hash"])
def test_spoiled_counts_of_placed_bundles_are_named_and_cost_no_lookup(
    scene: Scene, kind: str
) -> None:
    scene.obeying(A)
    scene.hint(A)
    scene.free(2)
    key = placed_key(scene.cluster)
    if kind == "no hash":
        scene.client.set(key, "x")
    else:
        scene.client.hset(key, A, "many" if kind == "a word" else "9" * 5_000)

    with capture_logs() as told:
        assert {scene.lookup().lookup(topic).broker for topic in topics()} == {A}

    assert {line["key"] for line in told if line["event"].startswith("placed bundles")} == {key}


def test_a_heartbeat_bundle_goes_to_the_broker_it_is_named_for(scene: Scene) -> None:
    scene.obeying(A, B, C)
    scene.hint(A, C)
    scene.put(None, f"pulsar/{B}/{HashRange(0, FULL_RANGE_END)}")

    assert scene.lookup().lookup(f"non-persistent://pulsar/{B}/heartbeat").broker == B


def test_two_brokers_that_are_asked_at_once_name_the_same_owner(scene: Scene) -> None:
    scene.obeying(A, B, C)
    scene.hint(A, B, C)
    scene.put(None)
    lookups = [scene.lookup(f"asked-{i}:8080", seed=i) for i in range(8)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda each: each.lookup(TOPIC), lookups))

    [assigned] = scene.accepted(Event.ASSIGN)
    assert {said(answer) for answer in answers} == {
        (AnswerKind.CONNECT, assigned.record.owner, None)
    }


def test_a_hundred_topics_of_one_bundle_are_waited_for_by_one(scene: Scene, client: Redis) -> None:
    threads = 100
    scene.obeying(A, B)
    scene.hint(A, B)
    scene.put(None)

    def calls(command: str) -> int:
        return int(client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0))

    read, leases = calls("hget"), calls("exists")

    def sleep(seconds: float) -> None:
        while calls("hget") < read + threads:
            pass
        scene.sleep(seconds)

    settings = LookupSettings(scene.cluster, HERE)
    lookup = Lookup(
        settings, client, np.random.default_rng(1), scene.clock, sleep, lambda: server_ms(client)
    )
    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lookup.lookup, [f"{TOPIC}-{i}" for i in range(threads)]))

    [assigned] = scene.accepted(Event.ASSIGN)
    assert {said(answer) for answer in answers} == {
        (AnswerKind.CONNECT, assigned.record.owner, None)
    }
    # Of both candidates, and of the owner while it is waited for.
    assert calls("exists") - leases < 10


# The owner is gone


def test_an_owner_that_failed_a_client_is_replaced_once_its_lease_is_gone(scene: Scene) -> None:
    scene.obeying(B)
    scene.hint(A, B)
    scene.put(owned(A))
    lookup = scene.lookup()

    first = lookup.lookup(TOPIC)
    assert said(first) == (AnswerKind.CONNECT, A, None)
    second = lookup.lookup(TOPIC, avoid=Avoid(A, first.epoch))

    assert said(second) == (AnswerKind.CONNECT, B, None)
    assert second.epoch > first.epoch


def test_an_owner_that_lives_is_answered_again(scene: Scene) -> None:
    scene.obeying(A, B)
    scene.hint(B)
    scene.put(owned(A))

    assert said(scene.lookup().lookup(TOPIC, avoid=Avoid(A, STANDING))) == (
        AnswerKind.CONNECT,
        A,
        None,
    )


@pytest.mark.parametrize(
    "avoid",
    [
        pytest.param(Avoid(A, Epoch(1, 6)), id="it has got the bundle again"),
        pytest.param(Avoid(C, STANDING), id="another broker"),
    ],
)
def test_a_complaint_about_an_earlier_owner_costs_the_present_one_nothing(
    scene: Scene, avoid: Avoid
) -> None:
    scene.obeying(B)
    scene.hint(B)
    scene.put(owned(A))

    assert said(scene.lookup().lookup(TOPIC, avoid=avoid)) == (AnswerKind.CONNECT, A, None)


def test_a_bundle_assigned_to_a_dead_broker_goes_to_another(scene: Scene) -> None:
    scene.obeying(B)
    scene.hint(B)
    scene.put(Record(state=State.ASSIGNING, epoch=STANDING, owner=A))

    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.CONNECT, B, None)


def test_a_client_turned_away_by_a_draining_source_waits_for_the_destination(scene: Scene) -> None:
    scene.obeying(A, B)
    scene.put(Record(state=State.RELEASING, epoch=STANDING, owner=A, destination=B))
    turned_away = Avoid(A, STANDING)
    lookup = scene.lookup()

    assert said(lookup.lookup(TOPIC, avoid=turned_away)) == (
        AnswerKind.RETRY,
        None,
        Cause.HAND_OVER,
    )
    scene.put(owned(B, Epoch(1, 9)))
    assert said(lookup.lookup(TOPIC, avoid=turned_away)) == (AnswerKind.CONNECT, B, None)
    assert scene.accepted(Event.ASSIGN) == []


def test_a_third_owner_that_dies_of_a_bundle_is_the_last(scene: Scene) -> None:
    scene.obeying(B)
    scene.hint(B)
    scene.put(Record(state=State.OWNED, epoch=STANDING, owner=A, since=1 << 50, falls=2))

    answer = scene.lookup().lookup(TOPIC, avoid=Avoid(A, STANDING))

    assert said(answer) == (AnswerKind.FAILED, None, Cause.QUARANTINED)


# A broker that does not decide


def test_a_broker_that_does_not_decide_sends_clients_to_one_that_must(scene: Scene) -> None:
    scene.obeying(HERE, B)
    scene.hint(HERE, "dead:8080", B)
    scene.put(None)

    answer = scene.lookup(decides=False).lookup(TOPIC)
    assert (answer.kind, answer.broker, answer.authoritative) == (AnswerKind.REDIRECT, B, True)
    assert scene.accepted(Event.ASSIGN) == []

    there = scene.lookup(B, decides=False).lookup(TOPIC, authoritative=answer.authoritative)
    assert there.kind is AnswerKind.CONNECT


def test_it_answers_for_what_is_owned_like_any_other(scene: Scene) -> None:
    scene.put(owned(A))

    assert said(scene.lookup(decides=False).lookup(TOPIC)) == (AnswerKind.CONNECT, A, None)


# The ring


def topics() -> list[str]:
    return [f"{TOPIC}-{i}" for i in range(500)]


def bundle_of(topic: str, bundles: Sequence[str]) -> str:
    """By looking at each."""
    where = position(topic)
    ends = [name.rsplit("_0x", 1)[1] for name in bundles]
    return next(name for name, end in zip(bundles, ends, strict=True) if where < int(end, 16))


def test_a_topic_is_found_in_its_bundle(scene: Scene) -> None:
    names = scene.free(16)
    for number, name in enumerate(names):
        scene.put(owned(f"broker-{number}:8080"), name)
    scene.put(owned("other:8080"), f"t/ns2/{HashRange(0, FULL_RANGE_END)}")
    scene.put(owned("other:8080"), f"t/ns/0x-cluster/{HashRange(0, FULL_RANGE_END)}")
    lookup = scene.lookup()

    found = {topic: lookup.lookup(topic) for topic in topics()}

    for topic, answer in found.items():
        assert answer.bundle == bundle_of(topic, names)
        assert answer.broker == f"broker-{names.index(answer.bundle)}:8080"


def test_after_a_division_topics_are_found_in_the_halves(scene: Scene, client: Redis) -> None:
    scene.put(owned(A))
    lookup = scene.lookup()
    lookup.lookup(TOPIC)

    halves = [
        f"{NAMESPACE}/{HashRange(0, 1 << 31)}",
        f"{NAMESPACE}/{HashRange(1 << 31, FULL_RANGE_END)}",
    ]
    for name, owner in zip(halves, (B, C), strict=True):
        scene.put(owned(owner, Epoch(1, 9)), name)
    scene.put(Record(state=State.DELETED, epoch=Epoch(1, 9)))
    client.zrem(bundles_key(scene.cluster), WHOLE)

    found = {topic: lookup.lookup(topic) for topic in topics()}
    assert {answer.broker for answer in found.values()} == {B, C}
    assert all(answer.bundle == bundle_of(topic, halves) for topic, answer in found.items())


def test_while_two_are_merged_and_after_that_topics_are_found(scene: Scene) -> None:
    """By edges of before: in the parts as long as they are served, then in the whole."""
    scene.obeying(A)
    lower, upper = scene.free(2)
    for name in (lower, upper):
        scene.put(owned(A), name)
    lookup, store = scene.lookup(), OwnershipStore(scene.client)
    told = Command(id="m/merge", cluster=scene.cluster, broker=A, kind=Order.MERGE, bundle=lower)
    asked = Transition(
        id="m",
        bundle=lower,
        event=Event.MERGE,
        expect=STANDING,
        neighbour=Neighbour(upper, STANDING),
        commands=(msgspec.structs.replace(told, neighbour=upper),),
    )

    def found() -> set[tuple[str | None, str | None]]:
        answers = map(lookup.lookup, topics())
        return {(answer.bundle, answer.broker) for answer in answers}

    assert found() == {(lower, A), (upper, A)}
    store.apply_batch(scene.cluster, [asked], generation=1, query_id="q", batch=1)
    assert found() == {(lower, A), (upper, A)}
    assert scene.sites[A].obey() == [Obeyed.DONE]
    assert found() == {(WHOLE, A)}


def test_a_deleted_bundle_that_the_index_still_names_is_tried_later(
    scene: Scene, client: Redis
) -> None:
    scene.put(Record(state=State.DELETED, epoch=STANDING))
    client.zadd(bundles_key(scene.cluster), {WHOLE: 0})

    assert said(scene.lookup().lookup(TOPIC)) == (AnswerKind.RETRY, None, Cause.DIVIDED)


def test_the_edges_of_so_many_namespaces_are_kept(
    scene: Scene, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "MOST_NAMESPACES", 2)
    for name in "abc":
        scene.put(owned(A), f"t/{name}/{HashRange(0, FULL_RANGE_END)}")
    lookup = scene.lookup()

    def reads(names: str) -> int:
        before = client.info("commandstats").get("cmdstat_zrangebylex", {}).get("calls", 0)
        for name in names:
            assert lookup.lookup(f"persistent://t/{name}/orders").broker == A
        return int(client.info("commandstats")["cmdstat_zrangebylex"]["calls"]) - int(before)

    # The first lookup also looks whether the store is open.
    assert reads("a") == 1 + 1
    assert reads("bab") == 1
    assert reads("c") == 1
    assert reads("bc") == 0
    assert reads("a") == 1


@pytest.mark.parametrize(
    ("topic", "cause"),
    [
        ("persistent://t/nobody/orders", Cause.UNKNOWN_NAMESPACE),
        ("orders", Cause.UNKNOWN_NAMESPACE),
        ("t/orders", Cause.BAD_TOPIC),
        ("https://t/ns/orders", Cause.BAD_TOPIC),
        ("persistent://t/ns/\ud800", Cause.BAD_TOPIC),
        ("persistent://t/holes/orders", Cause.NOT_TILING),
    ],
)
def test_what_cannot_be_found_fails_and_says_why(scene: Scene, topic: str, cause: Cause) -> None:
    scene.put(owned(A))
    scene.put(owned(A), "t/holes/0x00000000_0x40000000")

    answer = scene.lookup().lookup(topic)

    assert said(answer) == (AnswerKind.FAILED, None, cause)
    assert answer.says


# The store is closed, or not there


def test_while_the_store_is_closed_clients_try_later(scene: Scene, client: Redis) -> None:
    scene.obeying(C)
    scene.hint(C)
    scene.put(owned(A))
    scene.put(None, f"t/free/{HashRange(0, FULL_RANGE_END)}")
    lookup = scene.lookup()
    assert said(lookup.lookup(TOPIC)) == (AnswerKind.CONNECT, A, None)
    closed = (AnswerKind.RETRY, None, Cause.STORE_CLOSED)

    # As after a restart of the server: the run it was opened on is another.
    client.hset(open_key(scene.cluster), "replid", "0" * 40)
    assert said(lookup.lookup("t/free/orders")) == closed
    assert said(lookup.lookup("t/nobody/orders")) == closed
    scene.now += OPEN_FOR_S
    answer = lookup.lookup(TOPIC)
    assert said(answer) == closed
    assert "no job has opened it on this data" in answer.says

    client.delete(open_key(scene.cluster))
    let_in(client, scene.cluster, 2)
    assert said(lookup.lookup(TOPIC)) == (AnswerKind.CONNECT, A, None)


def test_a_server_that_was_away_is_looked_at_before_it_is_believed(
    cluster: str, tmp_path: Path
) -> None:
    with RedisServer(tmp_path) as server, redis_client(server.url) as client:
        scene = Scene(client, cluster)
        scene.put(owned(A))
        lookup = scene.lookup()
        assert lookup.lookup(TOPIC).cause is None

        server.kill()
        assert lookup.lookup(TOPIC).cause is Cause.STORE_UNAVAILABLE
        server.start()
        assert lookup.lookup(TOPIC).cause is Cause.STORE_CLOSED


def test_a_lookup_without_its_rights_is_to_be_asked_again(
    redis_server: RedisServer, client: Redis, cluster: str
) -> None:
    scene = Scene(client, cluster)
    scene.put(owned(A))
    user = f"broker-{cluster}"
    client.acl_setuser(user, enabled=True, nopass=True, keys=["*"], commands=["+@all"])
    with redis_client(f"redis://{user}:x@127.0.0.1:{redis_server.port}/0") as own:
        lookup = Scene(own, cluster).lookup()
        assert lookup.lookup(TOPIC).broker == A
        client.acl_setuser(user, commands=["-hget"])
        answer = lookup.lookup(TOPIC)
        assert said(answer) == (AnswerKind.RETRY, None, Cause.STORE_UNAVAILABLE)
        assert "check the user and password" in answer.says
        client.acl_setuser(user, commands=["+hget"])
        assert lookup.lookup(TOPIC).broker == A
