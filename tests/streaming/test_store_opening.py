"""A store that is open to a higher generation: Kafka says whether a newer job has taken over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import redis

from sinks.errors import Fenced, Isolated, KafkaUnavailable, StoreUnavailable
from sinks.exposition import Exposition
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from tests.faults.topics import Claims
from tests.support.opening import close, let_in, server_ms
from trimtab.doubt import Doubt
from trimtab.wire.hints import Hints
from trimtab.wire.keys import open_key, replicas_key

CLUSTER = "opening"
SEVERAL = ("east", "west", "north")
HINTS = Hints(round=1, candidates=(), each=0.1)


@pytest.fixture
def client(client: redis.Redis) -> Iterator[redis.Redis]:
    yield client
    client.flushdb()


@pytest.fixture
def claims() -> Claims:
    return Claims()


@pytest.fixture
def opener(client: redis.Redis, claims: Claims) -> StoreOpener:
    """Of the first claim there is, as in a topic that was made again."""
    leadership = Leadership(claims.claim, Exposition())
    return StoreOpener(
        ClusterGate(client), OwnershipStore(client), lambda _: {}, leadership, Exposition(), 0
    )


def test_claims_that_kafka_has_lost_are_gone_beyond(
    client: redis.Redis, opener: StoreOpener
) -> None:
    let_in(client, CLUSTER, 500)
    opener.open(CLUSTER)
    assert opener.generation == 501
    assert ClusterGate(client).is_open(CLUSTER)


def test_on_a_server_that_restarted_a_job_goes_on_with_a_new_generation(
    client: redis.Redis, opener: StoreOpener
) -> None:
    """Brokers may have seen epochs of the first one that the server has forgotten."""
    opener.open(CLUSTER)
    close(client, CLUSTER)
    opener.open(CLUSTER)
    assert opener.generation == 2
    assert ClusterGate(client).is_open(CLUSTER)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda it: it.open(CLUSTER), id="opening"),
        pytest.param(lambda it: it.hint(CLUSTER, HINTS), id="hints"),
    ],
)
def test_a_job_that_kafka_has_fenced_is_told_so(
    client: redis.Redis, opener: StoreOpener, claims: Claims, ask: Callable[[StoreOpener], None]
) -> None:
    let_in(client, CLUSTER, claims.claim().generation)
    with pytest.raises(Fenced):
        ask(opener)
    assert opener.generation == 1


def test_hints_are_set_on_a_store_that_closes_in_between(
    client: redis.Redis, opener: StoreOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once after the store was opened, it is open to a higher generation that Kafka has lost."""
    opener.open(CLUSTER)
    opens = opener.open
    disturbances = iter([lambda: let_in(client, CLUSTER, 700)])

    def disturbed(cluster: str) -> None:
        opens(cluster)
        next(disturbances, lambda: None)()

    monkeypatch.setattr(opener, "open", disturbed)
    opener.hint(CLUSTER, HINTS)
    assert opener.generation == 701


def test_a_wait_that_was_interrupted_is_not_cut_short_by_a_jump_of_the_clock(
    client: redis.Redis, claims: Claims
) -> None:
    leadership = Leadership(claims.claim, Exposition())
    opener = StoreOpener(
        ClusterGate(client), OwnershipStore(client), lambda _: {}, leadership, Exposition(), 60_000
    )
    assert_stays_closed(opener, client)


def test_a_history_that_is_closed_once_more_is_closed_for_as_long(
    client: redis.Redis, opener: StoreOpener
) -> None:
    """The server was emptied, and then its clock jumped."""
    opener.open(CLUSTER)
    client.delete(open_key(CLUSTER))
    opener._closed_for_ms = 60_000
    assert_stays_closed(opener, client)


def test_a_server_whose_clock_went_back_is_waited_for(
    client: redis.Redis, opener: StoreOpener
) -> None:
    """It stays closed as long; the journal would be read again and again meanwhile."""
    opener.look(CLUSTER)
    client.hset(open_key(CLUSTER), "rebuild_since", str(server_ms(client) + 2_000))
    opener.look(CLUSTER)
    opener._closed_until = dict.fromkeys(opener._closed_until, 0.0)
    opener._ended.set()
    with pytest.raises(StoreUnavailable, match="the job ends before"):
        opener.open(CLUSTER)


def assert_stays_closed(opener: StoreOpener, client: redis.Redis) -> None:
    """Though its clock says, after a wait that was interrupted, that it began long ago."""
    opener._ended.set()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            opener.open(CLUSTER)
        client.hset(open_key(CLUSTER), "rebuild_since", "1")
    assert not ClusterGate(client).is_open(CLUSTER)


def open_all(opener: StoreOpener) -> None:
    """As a batch does."""
    for step in (opener.look, opener.open):
        for cluster in SEVERAL:
            step(cluster)


def test_clusters_that_must_be_rebuilt_are_closed_side_by_side(
    client: redis.Redis, claims: Claims
) -> None:
    waits: list[None] = []
    opener = StoreOpener(
        ClusterGate(client),
        OwnershipStore(client),
        lambda _: {},
        Leadership(claims.claim, Exposition()),
        Exposition(),
        60_000,
        waits=lambda: waits.append(None),
    )
    opener._ended.set()

    with pytest.raises(StoreUnavailable):
        open_all(opener)

    assert all(client.hexists(open_key(each), "rebuild_since") for each in SEVERAL)
    assert waits


def test_a_cluster_that_reports_is_closed_before_its_first_batch(
    client: redis.Redis, opener: StoreOpener
) -> None:
    opener._closed_for_ms = 60_000
    opener.look_ahead(lambda: [CLUSTER])
    assert client.hget(open_key(CLUSTER), "rebuild_since")

    waited(opener, client)
    opener._ended.set()
    opener.open(CLUSTER)
    assert ClusterGate(client).is_open(CLUSTER)


def test_all_clusters_that_report_are_closed_ahead_but_for_those_that_are_open(
    client: redis.Redis, opener: StoreOpener
) -> None:
    opener._closed_for_ms = 60_000
    let_in(client, "north", 1)
    opener.look_ahead(lambda: SEVERAL)
    closed = [each for each in SEVERAL if client.hexists(open_key(each), "rebuild_since")]
    assert closed == ["east", "west"]


def test_a_store_that_was_replicated_is_not_looked_at_before_its_replicas_are_back(
    client: redis.Redis, opener: StoreOpener
) -> None:
    client.hset(open_key("east"), "connected", 1)
    client.hset(replicas_key("west"), "online", 1)
    client.hset(open_key("north"), mapping={"connected": 0, "replicas": 0})
    opener.look_ahead(lambda: SEVERAL)
    assert [client.hexists(open_key(each), "rebuild_since") for each in SEVERAL] == [0, 0, 1]


def test_rounds_rest_while_a_new_master_waits_for_replicas(
    client: redis.Redis, claims: Claims
) -> None:
    doubts: list[Doubt] = []
    opener = StoreOpener(
        ClusterGate(client),
        OwnershipStore(client),
        lambda _: {},
        Leadership(claims.claim, Exposition()),
        Exposition(),
        0,
        doubted=lambda _, doubt: doubts.append(doubt),
    )
    client.hset(open_key(CLUSTER), "before", 2)
    with pytest.raises(Isolated, match="0 of 1"):
        opener.open(CLUSTER)
    assert doubts == [Doubt.UNSTABLE]
    client.hset(open_key(CLUSTER), mapping={"before": 0, "replicas": 0})
    opener.open(CLUSTER)
    assert doubts[-1] is Doubt.STABLE


def test_a_cluster_whose_data_are_damaged_keeps_no_other_from_being_looked_at(
    client: redis.Redis, opener: StoreOpener
) -> None:
    client.set(open_key("east"), "no hash")
    opener.look_ahead(lambda: SEVERAL)
    assert client.hexists(open_key("west"), "rebuild_since")


def waited(opener: StoreOpener, client: redis.Redis) -> None:
    """It is as long as it need be since the first look, by both clocks."""
    [(cluster, history, _)] = opener._closed_until
    opener._closed_until = {(cluster, history, 1): 0.0}
    client.hset(open_key(cluster), "rebuild_since", "1")


def test_a_server_that_is_emptied_after_the_first_look_is_closed_for_as_long(
    client: redis.Redis, opener: StoreOpener
) -> None:
    """By this machine's clock too, for the server's may jump meanwhile."""
    opener._closed_for_ms = 60_000
    opener.look(CLUSTER)
    waited(opener, client)
    client.flushdb()
    opener.look(CLUSTER)
    assert max(opener._closed_until.values()) > time.monotonic()


def test_a_wait_ends_with_a_rebuild_by_another_job(
    client: redis.Redis, opener: StoreOpener
) -> None:
    opener.look(CLUSTER)
    let_in(client, CLUSTER, opener.generation)
    opener.look(CLUSTER)
    assert not opener._closed_until


def test_a_cluster_that_is_open_is_left_to_the_job_that_holds_it(
    client: redis.Redis, opener: StoreOpener
) -> None:
    let_in(client, CLUSTER, 1)
    opener._leadership.renew()
    opener.look_ahead(lambda: [CLUSTER])
    assert client.hget(open_key(CLUSTER), "generation") == b"1"


def test_what_cannot_be_looked_at_ahead_stops_nothing(
    client: redis.Redis, opener: StoreOpener
) -> None:
    def no_answer() -> list[str]:
        raise KafkaUnavailable("Kafka at nowhere")

    opener.look_ahead(no_answer)
    client.set(open_key(CLUSTER), "no hash")
    opener.look_ahead(lambda: [CLUSTER])
    assert not opener.clusters


def test_after_a_restart_of_the_server_all_clusters_are_open_to_one_new_generation(
    client: redis.Redis, opener: StoreOpener
) -> None:
    open_all(opener)
    for each in SEVERAL:
        close(client, each)

    open_all(opener)

    assert opener.generation == 2
    assert all(ClusterGate(client).is_open(each) for each in SEVERAL)
