"""What the store accepted reaches Kafka, and leaves Redis only then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import redis
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.errors import Closed, KafkaUnavailable, Misconfigured
from sinks.exposition import Exposition
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.journal_relay import JournalRelay, _outgoing
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.watch.relay import RelayThread
from tests.sinks.reading import everything_in, values_of
from tests.support.opening import keep_alive, let_in
from tests.support.publishing import Nowhere
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Change, Record, Transition
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


def test_only_clusters_with_something_to_relay_are_waiting(
    client: redis.Redis, cluster: str
) -> None:
    full, left_out, broken, empty = (f"{cluster}-{name}" for name in "abcd")
    claim(client, full, BUNDLES[0])
    client.sadd(keys.unjournalled_key(left_out), BUNDLES[0])
    client.set(keys.journal_key(broken), "no stream")
    relay = JournalRelay(client, Nowhere())
    assert relay.find_waiting([full, left_out, broken, empty]) == [full, left_out, broken]


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


def test_where_the_history_changes_meanwhile_nothing_is_deleted(tmp_path: Path) -> None:
    """Another master, whose clock is behind, may have given the same ids to entries of its own."""
    server = RedisServer(tmp_path)
    server.start()
    client = redis_client(server.url)

    class Outlived(Publisher):
        def __init__(self) -> None: ...

        def publish(self, records: Iterable[Outgoing]) -> None:
            assert [record.topic for record in records] == [keys.OWNERSHIP]
            server.kill()
            server.start()

    claim(client, "c", BUNDLES[0])
    try:
        JournalRelay(client, Outlived()).relay("c")
        assert journal_length(client, "c") == 1
    finally:
        client.close()
        server.kill()


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


def change_of(cluster: str, generation: int = 1, bundle: str = BUNDLES[1]) -> bytes:
    record = Record(state=State.OWNED, epoch=Epoch(generation, 9), owner="thief:8080")
    change = Change(cluster=cluster, bundle=bundle, event=Event.CLAIM, record=record)
    return msgspec.json.encode(change)


# Any: redis-py takes any mix of strings and bytes, and says so in no way that a dict fits.
ODD: dict[str, tuple[Any, str]] = {
    "no change": ({b"change": b"{"}, "bad-change"),
    "another field": ({b"other": b"x", b"\xff\x00": b"\xff"}, "bad-change"),
    "binary": ({b"change": b"\x00\xff\xfe"}, "bad-change"),
    "a string that is no text": ({b"change": b'{"cluster":"\xff"}'}, "bad-change"),
    "half a character": (
        {b"change": change_of("c", bundle=BUNDLES[1]).replace(b"t/n", b"\\ud800/n")},
        "bad-change",
    ),
    "nested without end": ({b"change": b"[" * 60_000}, "bad-change"),
    "a name that is no range": (
        {b"change": change_of("c").replace(b"_0x00000002", b"_x")},
        "bad-change",
    ),
    "owned by no broker": (
        {b"change": change_of("c").replace(b',"owner":"thief:8080"', b"")},
        "bad-change",
    ),
    "owned by no name": ({b"change": change_of("c").replace(b"thief:8080", b"")}, "bad-change"),
    "free, and somebody's": ({b"change": change_of("c").replace(b"Owned", b"Free")}, "bad-change"),
    "larger than Kafka takes": ({b"change": b'{"x":"' + b"y" * (2 << 20)}, "size"),
    "of another cluster": ({b"change": change_of("elsewhere")}, "wrong-cluster"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_entry_that_is_no_change_of_this_journal_does_not_stop_the_others(
    client: redis.Redis, bootstrap: str, name: str
) -> None:
    fields, reason = ODD[name]
    cluster = f"odd-{list(ODD).index(name)}"
    claim(client, cluster, BUNDLES[0])
    entry = client.xadd(keys.journal_key(cluster), fields)
    claim(client, cluster, BUNDLES[2])

    assert JournalRelay(client, Publisher(bootstrap)).relay(cluster) == 3

    assert journal_length(client, cluster) == 0
    for bundle in (BUNDLES[0], BUNDLES[2]):
        assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{bundle}")) == 1
    assert values_of(bootstrap, keys.OWNERSHIP, f"elsewhere/{BUNDLES[1]}") == []
    assert isinstance(entry, bytes)
    [value] = values_of(bootstrap, keys.DEAD_LETTERS, f"{cluster}/{entry.decode()}")
    assert msgspec.json.decode(value, type=DeadLetter).reason == reason


def test_a_generation_above_the_one_that_may_write_is_not_carried(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    let_in(client, cluster, 3)
    for generation in (3, 4, 9_000_000_000_000_000):
        client.xadd(keys.journal_key(cluster), {b"change": change_of(cluster, generation)})

    assert JournalRelay(client, Publisher(bootstrap)).relay(cluster) == 3

    [value] = values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[1]}")
    assert msgspec.json.decode(value, type=Change).record.epoch == Epoch(3, 9)


def test_the_journal_of_a_cluster_that_was_forgotten_waits(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    claim(client, cluster, BUNDLES[0])
    client.delete(keys.open_key(cluster))
    relay = JournalRelay(client, Publisher(bootstrap))
    with pytest.raises(Closed, match="waits"):
        relay.relay(cluster)
    let_in(client, cluster, 1)
    assert relay.relay(cluster) == 1


def test_of_a_bundle_that_is_forgotten_the_topic_has_a_tombstone(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    let_in(client, cluster, 3)
    kept = Record(state=State.OWNED, epoch=Epoch(2, 9), owner="a:8080")
    ended = Record(state=State.DELETED, epoch=Epoch(2, 9))
    for record, bundle in ((ended, BUNDLES[0]), (kept, BUNDLES[1])):
        change = Change(
            cluster=cluster,
            bundle=bundle,
            event=Event.RETIRE,
            record=record,
            pruned=True,
        )
        client.xadd(keys.journal_key(cluster), {b"change": msgspec.json.encode(change)})

    assert JournalRelay(client, Publisher(bootstrap)).relay(cluster) == 2

    key = f"{cluster}/{BUNDLES[0]}".encode()
    messages = everything_in(bootstrap, keys.OWNERSHIP)
    told, gone = (message.value() for message in messages if message.key() == key)
    assert msgspec.json.decode(told or b"", type=Change).pruned
    assert gone is None
    # Somebody wrote this beside the script: the newest record of what stands is kept.
    assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[1]}")) == 1


def test_where_partitions_were_added_a_forgotten_bundle_ends_in_each(bootstrap: str) -> None:
    """Its older records are in the partition that its key was hashed to before."""
    admin, topic = AdminClient({"bootstrap.servers": bootstrap}), "widened"
    [made] = admin.create_topics([NewTopic(topic, num_partitions=3)]).values()
    made.result()
    end = [Outgoing(topic, "c/b", value, everywhere=True) for value in (b"end", b"")]

    Publisher(bootstrap).publish(end)

    for partition in range(3):
        values = [message.value() for message in everything_in(bootstrap, topic, partition)]
        assert values == [b"end", None]


def test_a_topic_that_does_not_exist_swallows_no_end_of_a_bundle(bootstrap: str) -> None:
    with pytest.raises((KafkaUnavailable, Misconfigured), match="nowhere"):
        Publisher(bootstrap).publish([Outgoing("nowhere", "c/b", b"end", everywhere=True)])


def test_a_bundle_that_stands_is_told_in_its_own_partition_only() -> None:
    changes = {
        state: Change(
            cluster="c",
            bundle=BUNDLES[0],
            event=Event.RETIRE,
            record=Record(state=state, epoch=Epoch(1, 2)),
            pruned=True,
        )
        for state in (State.DELETED, State.OWNED)
    }
    told = {
        state: [
            each.everywhere
            for each in _outgoing("c", 1, b"1-0", {b"change": msgspec.json.encode(change)})
        ]
        for state, change in changes.items()
    }
    assert told == {State.DELETED: [True, True], State.OWNED: [False]}


def test_a_key_of_another_type_is_named(client: redis.Redis, cluster: str, bootstrap: str) -> None:
    key = keys.journal_key(cluster)
    client.set(key, "x")
    with pytest.raises(Misconfigured, match=re.escape(key)):
        JournalRelay(client, Publisher(bootstrap)).relay(cluster)


def test_a_thread_carries_on_if_the_journal_has_the_wrong_type(
    client: redis.Redis, bootstrap: str
) -> None:
    broken, sound = "broken-journal", "sound-journal"
    claim(client, sound, BUNDLES[0])
    client.set(keys.journal_key(broken), "x")
    thread = RelayThread(
        JournalRelay(client, Publisher(bootstrap)), lambda: (broken, sound), Exposition()
    )
    thread.look()
    assert journal_length(client, sound) == 0

    client.delete(keys.journal_key(broken))
    claim(client, broken, BUNDLES[0])
    thread.look()
    thread.look()
    assert journal_length(client, broken) == 0


def handed_over(client: redis.Redis, cluster: str, name: str) -> bytes:
    """Give a bundle from one broker to another; returns the command as its broker got it."""
    claim(client, cluster, BUNDLES[0])
    keep_alive(client, cluster, ("b:8080",))
    store = OwnershipStore(client)
    moving = Transition(
        id="move", bundle=BUNDLES[0], event=Event.TRANSFER, expect=Epoch(1, 1), broker="b:8080"
    )
    store.apply_batch(cluster, [moving], generation=1, query_id="q", batch=1)
    own = Command(
        id=name, cluster=cluster, broker="b:8080", kind=CommandKind.OWN, bundle=BUNDLES[0]
    )
    giving = Transition(
        id="give",
        bundle=BUNDLES[0],
        event=Event.HAND_OVER,
        expect=Epoch(1, 2),
        actor="a:8080",
        commands=(own,),
        within_ms=1000,
    )
    assert store.apply(cluster, giving).accepted
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    [(_, fields)] = cast(Any, client.xrange(keys.command_stream(cluster, "b:8080")))
    text: bytes = fields[b"command"]
    return text


def test_a_brokers_command_is_published_as_its_reader_got_it(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    got = handed_over(client, cluster, f"{cluster}/q/1/0/transfer/own")
    JournalRelay(client, Publisher(bootstrap)).relay(cluster)
    assert values_of(bootstrap, keys.COMMANDS, f"{cluster}/b:8080") == [got]
    assert msgspec.json.decode(got, type=Command).epoch == Epoch(1, 3)


def test_a_broker_cannot_publish_a_command_in_the_jobs_name(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    handed_over(client, cluster, f"{cluster}/q/1/0/own")
    JournalRelay(client, Publisher(bootstrap)).relay(cluster)
    assert values_of(bootstrap, keys.COMMANDS, f"{cluster}/b:8080") == []
    letters = everything_in(bootstrap, keys.DEAD_LETTERS)
    reasons = [
        msgspec.json.decode(letter.value() or b"", type=DeadLetter).reason
        for letter in letters
        if (letter.key() or b"").startswith(f"{cluster}/".encode())
    ]
    assert reasons == ["bad-command"]
    assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[0]}")) == 3


def test_the_jobs_own_commands_are_not_published_by_the_relay(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    let_in(client, cluster, 1)
    keep_alive(client, cluster, ("a:8080",))
    own = Command(
        id=f"{cluster}/q/1/0/own",
        cluster=cluster,
        broker="a:8080",
        kind=CommandKind.OWN,
        bundle=BUNDLES[0],
    )
    giving = Transition(
        id=f"{cluster}/q/1/0",
        bundle=BUNDLES[0],
        event=Event.ASSIGN,
        expect=NO_EPOCH,
        broker="a:8080",
        commands=(own,),
    )
    OwnershipStore(client).apply_batch(cluster, [giving], generation=1, query_id="q", batch=1)
    JournalRelay(client, Publisher(bootstrap)).relay(cluster)
    assert values_of(bootstrap, keys.COMMANDS, f"{cluster}/a:8080") == []
    assert len(values_of(bootstrap, keys.OWNERSHIP, f"{cluster}/{BUNDLES[0]}")) == 1


def test_what_a_full_journal_left_out_reaches_kafka(
    client: redis.Redis, cluster: str, bootstrap: str
) -> None:
    claim(client, cluster, BUNDLES[0])
    client.sadd(keys.unjournalled_key(cluster), BUNDLES[1])
    claim(client, cluster, BUNDLES[1])
    thread = RelayThread(
        JournalRelay(client, Publisher(bootstrap)), lambda: (cluster,), Exposition()
    )
    thread.look()
    thread.look()
    assert newest_records(bootstrap, cluster) == OwnershipStore(client).records(cluster)
    assert len(newest_records(bootstrap, cluster)) == 2
