"""What the store accepted reaches Kafka, and leaves Redis only then."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
import redis

from deploy.ports import free_port
from sinks.errors import KafkaUnavailable
from sinks.journal_relay import JournalRelay
from sinks.ownership_store import OwnershipStore
from sinks.publisher import Outgoing, Publisher
from tests.sinks.reading import values_of
from tests.support.opening import keep_alive, let_in
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.ownership import Change, Transition
from trimtab.wire.rows import DeadLetter

pytestmark = pytest.mark.e2e

BUNDLES = tuple(f"t/n/0x{low:08x}_0x{low + 1:08x}" for low in range(3))


def claim(client: redis.Redis, cluster: str, bundle: str) -> None:
    store = OwnershipStore(client)
    let_in(client, cluster, 1)
    keep_alive(client, cluster, ("a:8080",))
    asked = Transition(id=bundle, bundle=bundle, event=Event.CLAIM, expect=NO_EPOCH, actor="a:8080")
    assert store.apply(cluster, asked).accepted


def journal_length(client: redis.Redis, cluster: str) -> int:
    length = client.xlen(keys.journal_key(cluster))
    assert isinstance(length, int)
    return length


def test_accepted_transitions_reach_kafka_under_their_bundle(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    for bundle in BUNDLES:
        claim(client, cluster, bundle)
    relay = JournalRelay(client, Publisher(bootstrap))

    assert relay.relay(cluster) == 3
    assert relay.relay(cluster) == 0

    assert journal_length(client, cluster) == 0
    for bundle in BUNDLES:
        [value] = values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{bundle}")
        change = msgspec.json.decode(value, type=Change)
        record = OwnershipStore(client).record(cluster, bundle)
        assert change == Change(
            cluster=cluster, bundle=bundle, event=Event.CLAIM, record=change.record
        )
        assert change.record == record


def test_what_kafka_did_not_acknowledge_stays(client: redis.Redis, cluster: str) -> None:
    claim(client, cluster, BUNDLES[0])
    nowhere = Publisher(f"127.0.0.1:{free_port()}", {"delivery.timeout.ms": "1000"})

    with pytest.raises(KafkaUnavailable):
        JournalRelay(client, nowhere).relay(cluster)

    assert journal_length(client, cluster) == 1


def test_what_is_written_while_kafka_answers_stays_for_the_next_time(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    class Interrupted(Publisher):
        def publish(self, records: Iterable[Outgoing]) -> None:
            super().publish(records)
            claim(client, cluster, BUNDLES[1])

    claim(client, cluster, BUNDLES[0])

    assert JournalRelay(client, Interrupted(bootstrap)).relay(cluster) == 1

    assert journal_length(client, cluster) == 1
    assert JournalRelay(client, Publisher(bootstrap)).relay(cluster) == 1
    assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[1]}")) == 1


def test_an_entry_that_is_no_change_does_not_stop_the_others(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    entry = client.xadd(keys.journal_key(cluster), {"change": "{"})
    claim(client, cluster, BUNDLES[0])

    assert JournalRelay(client, Publisher(bootstrap)).relay(cluster) == 2

    assert journal_length(client, cluster) == 0
    assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[0]}")) == 1
    assert isinstance(entry, bytes)
    [value] = values_of(bootstrap, keys.DEAD_LETTERS, f"{cluster}/{entry.decode()}")
    assert msgspec.json.decode(value, type=DeadLetter).reason == "bad-change"
