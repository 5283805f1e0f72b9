"""A batch of the job is applied once, by the newest job, on a store that is open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.errors import Closed, Fenced, GenerationSpent, StoreUnavailable
from sinks.redis.ownership_store import BatchOutcome, OwnershipStore
from sinks.redis.server.connections import redis_client
from sinks.redis.server.script import Script
from sinks.redis.server.script import run as run_script
from tests.contracts.asking import BUNDLE, GENERATION, broker, command, commands, job, journal
from tests.support.opening import keep_alive, let_in
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.command import CommandKind
from trimtab.wire.ownership import Refused, Transition

A, B = "a:8080", "b:8080"


def assign(to: str, expect: Epoch = NO_EPOCH, name: str = "assign") -> Transition:
    own = command(to, CommandKind.OWN, name)
    return job(Event.ASSIGN, expect, to, id=name, commands=(own,), within_ms=1000)


def run(
    store: OwnershipStore,
    cluster: str,
    batch: int,
    *asked: Transition,
    generation: int = GENERATION,
) -> BatchOutcome:
    return store.apply_batch(cluster, asked, generation=generation, query_id="q", batch=batch)


def lose_everything(client: redis.Redis, cluster: str) -> None:
    for key in client.scan_iter(match=f"trimtab:{{{cluster}}}:*"):
        client.delete(key)


def test_a_repeated_batch_returns_the_first_outcome_and_does_nothing(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    first = run(store, cluster, 7, assign(A), assign(B, name="late"))
    assert [outcome.accepted for outcome in first.outcomes] == [True, False]
    assert not first.repeated
    epoch = Epoch(GENERATION, 1)
    store.apply(cluster, broker(A, Event.SERVE, epoch))

    again = run(store, cluster, 7, assign(A), assign(B, name="late"))

    assert again == BatchOutcome(first.outcomes, repeated=True)
    assert len(commands(client, cluster, A)) == 1
    assert len(journal(client, cluster)) == 2


def test_a_batch_repeated_by_the_next_job_returns_the_first_outcome(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    first = run(store, cluster, 7, assign(A))
    let_in(client, cluster, GENERATION + 1)

    again = run(store, cluster, 7, assign(A), generation=GENERATION + 1)

    assert again == BatchOutcome(first.outcomes, repeated=True)


def test_a_batch_older_than_the_last_is_refused_as_a_whole(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    run(store, cluster, 7)

    done = run(store, cluster, 6, assign(A), assign(B, name="late"))

    assert [outcome.reason for outcome in done.outcomes] == [Refused.OLDER_BATCH] * 2
    assert not done.repeated
    assert journal(client, cluster) == []


def test_another_batch_of_the_same_number_is_refused_as_a_whole(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """A copied checkpoint counts its batches from where it was copied, under the same query id."""
    run(store, cluster, 7, assign(A))

    more = run(store, cluster, 7, assign(A), assign(B, name="late"))
    other = run(store, cluster, 7, assign(A, name="other"))

    assert [outcome.reason for outcome in more.outcomes] == [Refused.OLDER_BATCH] * 2
    assert [outcome.reason for outcome in other.outcomes] == [Refused.OLDER_BATCH]
    assert not more.repeated
    assert len(journal(client, cluster)) == 1


def test_each_query_counts_its_own_batches(store: OwnershipStore, cluster: str) -> None:
    """With a new checkpoint Spark starts at 0 again, under a new query id."""
    run(store, cluster, 7)

    done = store.apply_batch(cluster, [assign(A)], generation=GENERATION, query_id="new", batch=0)

    assert [outcome.accepted for outcome in done.outcomes] == [True]


def test_later_requests_of_a_batch_see_the_earlier_ones(
    store: OwnershipStore, cluster: str
) -> None:
    done = run(store, cluster, 0, assign(A), assign(B, Epoch(GENERATION, 1), "then"))

    assert all(outcome.accepted for outcome in done.outcomes)
    record = store.record(cluster, BUNDLE)
    assert record is not None
    assert (record.owner, record.epoch) == (B, Epoch(GENERATION, 2))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "7",
        '{"epoch":["9",{}]}',
        '{"epoch":[1,1]}',
        '{"state":{},"epoch":[1,1]}',
        '{"state":"Owned","epoch":[1,1],"owner":{}}',
        '{"state":"Releasing","epoch":[1,1],"owner":"a:8080","destination":[1]}',
        '{"state":"Owned","epoch":[1,1],"owner":"gone:8080","since":"x"}',
        '{"state":"Owned","epoch":[1,1],"owner":"gone:8080","falls":"x"}',
    ],
)
def test_a_damaged_record_costs_no_other_bundle_of_the_page(
    store: OwnershipStore, client: redis.Redis, cluster: str, text: str
) -> None:
    other = "tenant/ns/0x00000000_0x10000000"
    client.hset(keys.ownership_key(cluster), BUNDLE, text)

    ran = run(
        store, cluster, 1, assign(A), msgspec.structs.replace(assign(A, name="other"), bundle=other)
    )

    assert [outcome.reason for outcome in ran.outcomes] == [Refused.UNREADABLE, None]
    assert store.record(cluster, BUNDLE) is None
    assert store.records_of(cluster, A, [BUNDLE]).keys() == {other}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param('"x":nan', id="no number"),
        pytest.param('"since":0x1', id="hexadecimal"),
        pytest.param('"by":"a\nb"', id="a line's end"),
        pytest.param('"x":' + "[" * 900 + "]" * 900, id="deep"),
    ],
)
def test_what_only_the_scripts_can_read_costs_no_answer(
    store: OwnershipStore, client: redis.Redis, cluster: str, more: str
) -> None:
    """It is refused by its epoch, and changed like any other."""
    text = f'{{"state":"Free","epoch":[1,1],{more}}}'
    client.hset(keys.ownership_key(cluster), BUNDLE, text)

    [refused] = run(store, cluster, 1, assign(A)).outcomes
    assert refused.reason is Refused.STALE_EPOCH
    [repeated] = run(store, cluster, 1, assign(A)).outcomes
    assert repeated == refused

    [given] = run(store, cluster, 2, assign(A, Epoch(1, 1), "again")).outcomes
    assert given.accepted
    assert store.record(cluster, BUNDLE) == given.record


def test_a_record_whose_owner_is_null_is_unowned(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    text = '{"state":"Owned","epoch":[1,1],"owner":null,"destination":null}'
    client.hset(keys.ownership_key(cluster), BUNDLE, text)
    unload = Transition(id="unload", bundle=BUNDLE, event=Event.UNLOAD, expect=Epoch(1, 1))

    [outcome] = run(store, cluster, 1, unload).outcomes

    assert outcome.accepted


def test_a_server_that_forgets_a_script_at_once_is_asked_again_later(client: redis.Redis) -> None:
    """It restarted between the loading and the call."""
    with pytest.raises(StoreUnavailable, match="SCRIPT FLUSH"):
        run_script(client, Script("return {}", "0" * 40), [], [])


def test_an_older_job_is_fenced(store: OwnershipStore, client: redis.Redis, cluster: str) -> None:
    let_in(client, cluster, GENERATION + 1)

    with pytest.raises(Fenced, match=f"generation {GENERATION + 1}, ours is {GENERATION}"):
        run(store, cluster, 0, assign(A))
    with pytest.raises(Fenced):
        let_in(client, cluster, GENERATION)
    assert journal(client, cluster) == []


def test_a_job_that_has_not_opened_the_store_finds_it_closed(
    store: OwnershipStore, cluster: str
) -> None:
    with pytest.raises(Closed):
        run(store, cluster, 0, assign(A), generation=GENERATION + 1)


def test_opening_twice_is_harmless(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    let_in(client, cluster, GENERATION)

    assert run(store, cluster, 0, assign(A)).outcomes[0].accepted


def test_nothing_is_done_before_the_store_is_opened(client: redis.Redis, cluster: str) -> None:
    store = OwnershipStore(client)

    with pytest.raises(Closed):
        run(store, cluster, 0, assign(A))
    with pytest.raises(Closed):
        store.apply(cluster, broker(A, Event.CLAIM))
    assert store.record(cluster, BUNDLE) is None


def test_a_store_opened_on_another_server_is_closed(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """A replica that was promoted has the open key, but not the run id in it."""
    client.hset(keys.open_key(cluster), "replid", "0" * 40)

    with pytest.raises(Closed):
        run(store, cluster, 0, assign(A))
    with pytest.raises(Closed):
        store.apply(cluster, broker(A, Event.CLAIM))
    with pytest.raises(GenerationSpent):
        let_in(client, cluster, GENERATION)


def test_epochs_grow_over_an_emptied_redis(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    before = run(store, cluster, 0, assign(A)).outcomes[0].record
    lose_everything(client, cluster)
    assert store.record(cluster, BUNDLE) is None

    let_in(client, cluster, GENERATION + 1)
    keep_alive(client, cluster, (B,))
    after = store.apply(cluster, broker(B, Event.CLAIM)).record

    assert before is not None
    assert after is not None
    assert before.epoch < after.epoch == Epoch(GENERATION + 1, 1)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def test_a_restart_of_the_server_closes_it_until_a_new_generation_opens_it(
    own_server: RedisServer,
) -> None:
    with redis_client(own_server.url) as client:
        store = OwnershipStore(client)
        let_in(client, "c", GENERATION)
        keep_alive(client, "c", (A, B))
        assert store.apply("c", broker(A, Event.CLAIM)).accepted
        own_server.kill()
        own_server.start()

        with pytest.raises(Closed):
            store.apply("c", broker(B, Event.CLAIM))
        with pytest.raises(Closed):
            run(store, "c", 0, assign(A))
        with pytest.raises(GenerationSpent):
            let_in(client, "c", GENERATION)

        let_in(client, "c", GENERATION + 1)
        unloading = run(
            store, "c", 0, job(Event.UNLOAD, Epoch(GENERATION, 1)), generation=GENERATION + 1
        ).outcomes[0]
        assert unloading.record is not None
        assert unloading.record.state is State.RELEASING
        assert unloading.record.epoch == Epoch(GENERATION + 1, 2)


def test_a_generation_is_spent_once_its_server_was_replaced_by_an_empty_one(
    own_server: RedisServer,
) -> None:
    with redis_client(own_server.url) as client:
        gate = let_in(client, "c", GENERATION)
        client.flushall()
        own_server.kill()
        own_server.start()

        with pytest.raises(GenerationSpent):
            gate.open("c", GENERATION)
