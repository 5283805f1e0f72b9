"""A journal that no relay reads stops growing, and keeps each bundle's newest record."""

from __future__ import annotations

import re
from typing import Any

import pytest
import redis

from sinks.errors import Damaged
from sinks.redis.journal_relay import PAGE, JournalRelay
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.scripts import transition_script
from tests.contracts.asking import ABOVE, BUNDLE, GENERATION, HALVES, ask, broker, job, journal
from tests.support.opening import let_in
from tests.support.publishing import Nowhere
from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.ownership import Change

A = "a:8080"

[_MOST] = re.findall(r"MOST_JOURNAL = (\d+)", transition_script().text)
MOST = int(_MOST)


@pytest.fixture
def relay(client: redis.Redis) -> JournalRelay:
    return JournalRelay(client, Nowhere())


def fill(client: redis.Redis, cluster: str, number: int) -> None:
    """Have the journal hold so many entries, with some written a call."""
    more = "for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'change', '{}') end"
    while lacking := number - length(client, cluster):
        client.eval(more, 1, keys.journal_key(cluster), str(min(5000, lacking)))


def drain(client: redis.Redis, cluster: str) -> None:
    """As a relay that has carried everything."""
    client.xtrim(keys.journal_key(cluster), maxlen=0, approximate=False)


def length(client: redis.Redis, cluster: str) -> int:
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    found: Any = client.xlen(keys.journal_key(cluster))
    return int(found)


def left_out(client: redis.Redis, cluster: str) -> set[str]:
    found: Any = client.smembers(keys.unjournalled_key(cluster))
    return {name.decode() for name in found}


def test_a_full_journal_grows_no_further(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    fill(client, cluster, MOST)
    outcome = ask(store, cluster, broker(A, Event.CLAIM))
    assert outcome.accepted
    assert ask(store, cluster, broker(A, Event.RELEASE, Epoch(GENERATION, 1))).accepted
    assert length(client, cluster) == MOST
    assert left_out(client, cluster) == {BUNDLE}


def test_what_one_request_does_is_left_out_as_a_whole_or_not_at_all(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    ask(store, cluster, broker(A, Event.CLAIM))
    ask(store, cluster, job(Event.SPLIT, Epoch(GENERATION, 1)))
    fill(client, cluster, MOST - 1)
    divided = broker(A, Event.RETIRE, Epoch(GENERATION, 2), children=HALVES)
    assert ask(store, cluster, divided).accepted
    assert length(client, cluster) == MOST + 2
    assert left_out(client, cluster) == set()


def test_what_was_left_out_is_put_back_as_it_stands_then(
    store: OwnershipStore, client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    fill(client, cluster, MOST)
    ask(store, cluster, broker(A, Event.CLAIM))
    ask(store, cluster, broker(A, Event.CLAIM, bundle=ABOVE))
    ask(store, cluster, broker(A, Event.RELEASE, Epoch(GENERATION, 1)))
    drain(client, cluster)

    assert relay.refill(cluster) == 2

    assert left_out(client, cluster) == set()
    records = store.records(cluster)
    put = sorted(journal(client, cluster), key=lambda change: change.bundle)
    assert put == [
        Change(cluster=cluster, bundle=bundle, event=Event.RESTORE, record=records[bundle])
        for bundle in (BUNDLE, ABOVE)
    ]
    assert relay.refill(cluster) == 0


def test_until_all_is_put_back_more_is_left_out(
    store: OwnershipStore, client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    """So that no later change stands in the journal before what it follows."""
    fill(client, cluster, MOST)
    ask(store, cluster, broker(A, Event.CLAIM))
    drain(client, cluster)

    ask(store, cluster, broker(A, Event.CLAIM, bundle=ABOVE))
    assert journal(client, cluster) == []
    assert relay.refill(cluster) == 2
    ask(store, cluster, broker(A, Event.RELEASE, Epoch(GENERATION, 1)))

    assert [change.event for change in journal(client, cluster)][2:] == [Event.RELEASE]
    assert left_out(client, cluster) == set()


def test_no_more_than_a_page_is_put_back_in_one_step(
    client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    let_in(client, cluster, GENERATION)
    client.sadd(keys.unjournalled_key(cluster), *(f"t/n/{i}" for i in range(PAGE + 1)))
    relay.refill(cluster)
    assert len(left_out(client, cluster)) == 1


def test_a_bundle_that_has_no_record_is_not_put_back(
    client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    """A broker may write anything into the set."""
    client.sadd(keys.unjournalled_key(cluster), "t/n/nothing")
    assert relay.refill(cluster) == 0
    assert length(client, cluster) == 0


def test_a_bundle_that_the_journal_does_not_take_is_put_back_later(
    store: OwnershipStore, client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    ask(store, cluster, broker(A, Event.CLAIM))
    client.delete(keys.journal_key(cluster))
    client.sadd(keys.unjournalled_key(cluster), BUNDLE)
    client.xadd(keys.journal_key(cluster), {"change": "x"}, id=f"{2**64 - 1}-{2**64 - 1}")
    with pytest.raises(Damaged):
        relay.refill(cluster)
    assert left_out(client, cluster) == {BUNDLE}

    client.delete(keys.journal_key(cluster))
    assert relay.refill(cluster) == 1
    assert left_out(client, cluster) == set()


@pytest.mark.parametrize("key", [keys.journal_key, keys.unjournalled_key])
def test_where_the_journal_cannot_be_written_no_record_is(
    store: OwnershipStore, client: redis.Redis, cluster: str, key: Any
) -> None:
    client.set(key(cluster), "x")
    with pytest.raises(Damaged, match="WRONGTYPE"):
        ask(store, cluster, broker(A, Event.CLAIM))
    assert store.records(cluster) == {}


def test_where_the_records_cannot_be_read_it_is_still_known_what_was_left_out(
    client: redis.Redis, cluster: str, relay: JournalRelay
) -> None:
    client.sadd(keys.unjournalled_key(cluster), BUNDLE)
    client.set(keys.ownership_key(cluster), "x")

    with pytest.raises(Damaged):
        relay.refill(cluster)

    assert left_out(client, cluster) == {BUNDLE}
