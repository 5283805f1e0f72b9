"""Bundles that ended long ago are forgotten, and nothing that may still count."""

from __future__ import annotations

import msgspec
import pytest
import redis

from sinks.errors import Closed, Damaged, Fenced
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.pruning import KEPT_MS, Pruner
from sinks.redis.scripts import MOST_JOURNAL
from tests.contracts.asking import ABOVE, BUNDLE, GENERATION, HALVES, ask, broker, job, journal
from tests.support.opening import close, let_in
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.ownership import Change, Record

A = "a:8080"
LATER = GENERATION + 1
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def pruner(client: redis.Redis) -> Pruner:
    return Pruner(client)


@pytest.fixture
def ended(store: OwnershipStore, cluster: str) -> Record:
    """The end of BUNDLE, which was divided; what is journalled of it stands at the end."""
    ask(store, cluster, broker(A, Event.CLAIM))
    ask(store, cluster, job(Event.SPLIT, Epoch(GENERATION, 1)))
    divided = broker(A, Event.RETIRE, Epoch(GENERATION, 2), children=HALVES)
    record = ask(store, cluster, divided).record
    assert record is not None
    assert record.state is State.DELETED
    return record


def test_the_end_of_a_bundle_is_forgotten_and_that_is_journalled(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner, ended: Record
) -> None:
    let_in(client, cluster, LATER)
    assert pruner.prune(cluster, LATER, kept_ms=-DAY_MS) == 1
    assert store.records(cluster).keys() == set(HALVES)
    assert journal(client, cluster)[-1] == Change(
        cluster=cluster, bundle=BUNDLE, event=Event.RETIRE, record=ended, pruned=True
    )
    assert pruner.prune(cluster, LATER, kept_ms=-DAY_MS) == 0


@pytest.mark.usefixtures("ended")
def test_what_begins_there_again_has_a_higher_epoch(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner, ended: Record
) -> None:
    let_in(client, cluster, LATER)
    pruner.prune(cluster, LATER, kept_ms=-DAY_MS)
    # Merged again.
    lower, upper = HALVES
    epochs = [store.records(cluster)[half].epoch for half in HALVES]
    merge = msgspec.structs.replace(
        job(Event.MERGE, epochs[0], neighbour=(upper, list(epochs[1]))), bundle=lower
    )
    done = store.apply_batch(cluster, [merge], generation=LATER, query_id="q", batch=1)
    assert done.outcomes[0].accepted
    retire = broker(
        A,
        Event.RETIRE,
        Epoch(LATER, epochs[0].counter + 1),
        bundle=lower,
        neighbour=(upper, [LATER, epochs[1].counter + 1]),
        children=(BUNDLE,),
    )
    assert store.apply(cluster, retire).accepted
    again = store.records(cluster)[BUNDLE]
    assert again.state is State.OWNED
    assert again.epoch.counter > ended.epoch.counter


@pytest.mark.usefixtures("ended")
def test_what_covers_its_part_keeps_it_from_being_claimed(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    pruner.prune(cluster, LATER, kept_ms=-DAY_MS)
    assert not ask(store, cluster, broker(A, Event.CLAIM, NO_EPOCH, id="again")).accepted


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize(
    ("generation", "kept_ms"),
    [
        pytest.param(LATER, DAY_MS, id="of the last day"),
        pytest.param(LATER, KEPT_MS, id="of as long as the topic keeps every change"),
        pytest.param(GENERATION, -DAY_MS, id="of the generation that may write"),
    ],
)
def test_a_recent_end_stays(  # noqa: PLR0913 - a store, and what it is asked
    store: OwnershipStore,
    client: redis.Redis,
    cluster: str,
    pruner: Pruner,
    generation: int,
    kept_ms: int,
) -> None:
    let_in(client, cluster, generation)
    assert pruner.prune(cluster, generation, kept_ms) == 0
    assert BUNDLE in store.records(cluster)


def test_the_script_looks_at_each_record_itself(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    """It may have changed since the pages were read."""
    ask(store, cluster, broker(A, Event.CLAIM))
    ask(store, cluster, broker(A, Event.CLAIM, bundle=ABOVE))
    let_in(client, cluster, LATER)
    assert pruner._remove(cluster, LATER, -DAY_MS, [BUNDLE, ABOVE, "t/n/nothing"]) == 0
    assert store.records(cluster).keys() == {BUNDLE, ABOVE}


@pytest.mark.usefixtures("ended")
def test_an_older_job_and_a_closed_store_forget_nothing(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER + 1)
    with pytest.raises(Fenced):
        pruner.prune(cluster, LATER, kept_ms=-DAY_MS)
    with pytest.raises(Closed):
        pruner.prune(cluster, LATER + 2, kept_ms=-DAY_MS)
    close(client, cluster)
    with pytest.raises(Closed):
        pruner.prune(cluster, LATER + 1, kept_ms=-DAY_MS)
    assert BUNDLE in store.records(cluster)


@pytest.mark.usefixtures("ended")
def test_where_the_index_was_deleted_nothing_is_forgotten(
    client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    client.delete(keys.bundles_key(cluster))
    with pytest.raises(Closed):
        pruner.prune(cluster, LATER, kept_ms=-DAY_MS)


@pytest.mark.usefixtures("ended")
def test_beside_a_job_of_an_older_version_nothing_is_forgotten(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    client.hset(keys.open_key(cluster), "run_id", "0" * 40)
    with pytest.raises(Closed):
        pruner.prune(cluster, LATER, kept_ms=-DAY_MS)
    assert BUNDLE in store.records(cluster)


@pytest.mark.usefixtures("ended")
def test_while_the_journal_lacks_changes_nothing_is_forgotten(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    client.sadd(keys.unjournalled_key(cluster), BUNDLE)
    assert pruner.prune(cluster, LATER, kept_ms=-DAY_MS) == 0
    assert BUNDLE in store.records(cluster)


@pytest.mark.usefixtures("ended")
def test_what_the_journal_does_not_take_is_not_forgotten(
    store: OwnershipStore, client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    before = store.records(cluster)
    client.set(keys.journal_key(cluster), "spoiled")

    with pytest.raises(Damaged):
        pruner.prune(cluster, LATER, kept_ms=-DAY_MS)

    assert store.records(cluster) == before


@pytest.mark.usefixtures("ended")
def test_nothing_is_forgotten_while_the_journal_is_full(
    client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    with client.pipeline() as together:
        for _ in range(MOST_JOURNAL):
            together.xadd(keys.journal_key(cluster), {"x": "y"})
        together.execute()

    assert pruner.prune(cluster, LATER, kept_ms=-DAY_MS) == 0


def test_the_session_of_a_name_without_a_lease_at_two_looks_is_forgotten(
    client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    sessions = keys.sessions_key(cluster)
    client.hset(sessions, mapping={"gone:1": 1, "alive:1": 2, "again:1": 3})
    client.set(keys.lease_key(cluster, "alive:1"), "+2")
    assert pruner.forget_sessions(cluster, LATER) == 0
    client.hset(sessions, "again:1", 4)

    assert pruner.forget_sessions(cluster, LATER) == 1

    assert client.hgetall(sessions) == {b"alive:1": b"2", b"again:1": b"4"}
    assert pruner.forget_sessions(cluster, LATER) == 1


def test_a_session_that_came_back_meanwhile_stays(
    client: redis.Redis, cluster: str, pruner: Pruner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script looks again: between its caller's look and it a process may have begun."""
    let_in(client, cluster, LATER)
    sessions = keys.sessions_key(cluster)
    client.hset(sessions, mapping={"later:1": 2, "alive:1": 1})
    client.set(keys.lease_key(cluster, "alive:1"), "+1")
    looked = {"later:1": "1", "alive:1": "1"}
    monkeypatch.setattr(pruner, "_sessions_without_lease", lambda _: looked)

    assert [pruner.forget_sessions(cluster, LATER) for _ in range(2)] == [0, 0]

    assert client.hlen(sessions) == 2


def test_an_older_job_and_a_closed_store_forget_no_session(
    client: redis.Redis, cluster: str, pruner: Pruner
) -> None:
    let_in(client, cluster, LATER)
    client.hset(keys.sessions_key(cluster), "gone:1", 1)
    pruner.forget_sessions(cluster, GENERATION)
    with pytest.raises(Fenced):
        pruner.forget_sessions(cluster, GENERATION)
    close(client, cluster)
    with pytest.raises(Closed):
        pruner.forget_sessions(cluster, LATER)
