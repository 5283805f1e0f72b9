"""A step of the script that fails in its middle changes nothing that decides, or is repaired."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from redis.exceptions import RedisError

from sinks.errors import SinkError
from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import BUNDLE, GENERATION, HALVES, ask, broker, command, job, journal
from tests.contracts.conftest import BROKERS
from tests.support.opening import indexed, keep_alive
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.command import CommandKind

A, B = BROKERS[:2]
FIRST = Epoch(GENERATION, 1)


@pytest.fixture
def splitting(store: OwnershipStore, client: redis.Redis, cluster: str) -> Epoch:
    """The bundle is a's, which divides it; its epoch."""
    keep_alive(client, cluster, BROKERS)
    assert ask(store, cluster, job(Event.ASSIGN, Epoch(0, 0), A)).accepted
    assert ask(store, cluster, broker(A, Event.SERVE, FIRST)).accepted
    split = command(A, CommandKind.SPLIT)
    asked = job(Event.SPLIT, Epoch(GENERATION, 2), commands=(split,))
    after = ask(store, cluster, asked).record
    assert after is not None
    return after.epoch


@pytest.mark.usefixtures("splitting")
@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param(lambda cluster: keys.owned_key(cluster, A), id="what the broker owns"),
        pytest.param(keys.bundles_key, id="the index"),
    ],
)
def test_nothing_is_divided_where_a_key_cannot_be_written(
    store: OwnershipStore,
    client: redis.Redis,
    cluster: str,
    splitting: Epoch,
    spoiled: Callable[[str], str],
) -> None:
    before = store.records(cluster)
    retire = broker(A, Event.RETIRE, splitting, children=HALVES)
    if client.exists(spoiled(cluster)):
        client.rename(spoiled(cluster), f"{spoiled(cluster)}:aside")
    client.set(spoiled(cluster), "of another type")

    with pytest.raises((SinkError, RedisError)):
        store.apply(cluster, retire)

    assert store.records(cluster) == before
    client.delete(spoiled(cluster))
    if client.exists(f"{spoiled(cluster)}:aside"):
        client.rename(f"{spoiled(cluster)}:aside", spoiled(cluster))
    assert store.apply(cluster, retire).accepted
    after = store.records(cluster)
    assert [after[half].owner for half in HALVES] == [A, A]
    assert indexed(client, cluster) == sorted(HALVES)


def test_what_a_spoiled_journal_does_not_take_is_noted(
    store: OwnershipStore, client: redis.Redis, cluster: str, splitting: Epoch
) -> None:
    """No id is above its last one."""
    client.xadd(keys.journal_key(cluster), {"a": "b"}, f"{2**64 - 1}-{2**64 - 1}")

    assert ask(store, cluster, broker(A, Event.RETIRE, splitting, children=HALVES)).accepted

    left_out = client.smembers(keys.unjournalled_key(cluster))
    assert left_out == {name.encode() for name in (BUNDLE, *HALVES)}


def test_a_set_that_the_owner_before_has_spoiled_keeps_no_change_from_the_journal(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    keep_alive(client, cluster, BROKERS)
    assert ask(store, cluster, job(Event.ASSIGN, Epoch(0, 0), A)).accepted
    client.set(keys.owned_key(cluster, A), "of another type")

    assert ask(store, cluster, job(Event.ASSIGN, FIRST, B)).accepted

    assert [change.record.owner for change in journal(client, cluster)] == [A, B]


def test_a_broker_that_spoils_its_own_commands_costs_the_page_nothing(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    keep_alive(client, cluster, BROKERS)
    client.set(keys.command_stream(cluster, B), "of another type")
    own = command(B, CommandKind.OWN)

    assigned = ask(store, cluster, job(Event.ASSIGN, Epoch(0, 0), B, commands=(own,)))

    assert assigned.record is not None
    assert (assigned.record.state, assigned.record.owner) == (State.ASSIGNING, B)
