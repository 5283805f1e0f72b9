"""Which bundles a migration waits for, read from Redis: it never stands still without a word."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
import redis

from control.migration.waiting_bundles import (
    MOST_NAMED,
    STILL_MS,
    Cause,
    WaitingBundle,
    WaitingBundles,
)
from deploy.redis_server import RedisServer
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from tests.contracts.asking import GENERATION
from tests.support.migrations import GREEN
from tests.support.opening import keep_alive, let_in
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire.keys import bundles_key, named_key, ownership_key
from trimtab.wire.ownership import Record

A, B = "a:8080", "b:8080"
NOW = 1_000_000
_names = itertools.count()


class Place:
    """A cluster in Redis with a migration that has stood still for long; A is alive."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.it = Migration("m", f"waits-{next(_names)}", "t/one", GREEN, moved=NOW - STILL_MS)
        self.waiting = WaitingBundles(Migrations(client), OwnershipStore(client), Leases(client))
        let_in(client, self.it.cluster, GENERATION)
        keep_alive(client, self.it.cluster, (A,))

    def put(self, number: int, record: Record | None, named: int | None = None) -> str:
        """A bundle of the scope with its record, named for a wave or not."""
        bundle = f"t/one/0x{number:08x}_0x{number + 1:08x}"
        cluster = self.it.cluster
        self.client.zadd(bundles_key(cluster), {bundle: 0})
        if record is not None:
            self.client.hset(ownership_key(cluster), bundle, msgspec.json.encode(record))
        if named is not None:
            self.client.hset(named_key(cluster, "m"), bundle, str(named))
        return bundle

    def found(self, **changes: object) -> tuple[WaitingBundle, ...]:
        it = replace(self.it, **changes)  # type: ignore[arg-type]
        return self.waiting.find(it, NOW)


@pytest.fixture(scope="module")
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_client(redis_server.url) as found:
        yield found


@pytest.fixture
def place(client: redis.Redis) -> Place:
    return Place(client)


def of(state: State, owner: str | None = None) -> Record:
    return Record(state=state, epoch=Epoch(GENERATION, 1), owner=owner)


def test_each_bundle_that_keeps_a_migration_still_is_named_with_its_cause(place: Place) -> None:
    free, unknown = place.put(1, of(State.FREE), named=0), place.put(2, None)
    quarantined = place.put(3, of(State.QUARANTINED), named=0)
    lost = place.put(4, of(State.OWNED, B), named=0)
    silent = place.put(5, of(State.OWNED, A))
    place.put(6, of(State.OWNED, A), named=0)
    place.put(7, of(State.DELETED))
    loading = place.put(8, of(State.ASSIGNING, A), named=0)
    assert place.found() == (
        WaitingBundle(free, Cause.NO_OWNER),
        WaitingBundle(unknown, Cause.NO_OWNER),
        WaitingBundle(quarantined, Cause.QUARANTINED),
        WaitingBundle(lost, Cause.NO_LEASE, B),
        WaitingBundle(loading, Cause.NOT_LOADED, A),
    )
    assert WaitingBundle(silent, Cause.NOT_NAMED, A) not in place.found()


def test_those_without_a_broker_come_before_those_that_are_not_named(place: Place) -> None:
    silent = [place.put(number, of(State.OWNED, A)) for number in range(2 * MOST_NAMED)]
    quarantined = place.put(100, of(State.QUARANTINED))
    first, *rest = place.found()
    assert first == WaitingBundle(quarantined, Cause.QUARANTINED)
    assert rest == [WaitingBundle(each, Cause.NOT_NAMED, A) for each in silent[: MOST_NAMED - 1]]


def test_a_bundle_is_waited_for_until_it_is_named_for_the_present_wave(place: Place) -> None:
    bundle = place.put(1, of(State.OWNED, A), named=0)
    assert place.found(wave=0) == ()
    assert place.found(wave=1) == (WaitingBundle(bundle, Cause.NOT_NAMED, A),)
    # Back to blue everything goes by its records: no bundle has to be named.
    assert place.found(wave=1, state=MigrationState.ROLLING_BACK) == ()


@pytest.mark.parametrize("state", [MigrationState.COMPLETED, MigrationState.ROLLED_BACK])
def test_what_has_ended_waits_for_nothing(place: Place, state: MigrationState) -> None:
    place.put(1, of(State.QUARANTINED))
    assert place.found(state=state) == ()


def test_bundles_are_not_read_while_a_migration_comes_further(place: Place) -> None:
    place.put(1, of(State.QUARANTINED))
    assert place.found(moved=NOW - STILL_MS + 1) == ()
    assert len(place.found()) == 1
