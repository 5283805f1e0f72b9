"""What a rebuild finds in the journal topic, however its records lie there."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from confluent_kafka import Producer

import sinks.kafka.journal_reader
from simulation.replay.recorded import RecordedTopics
from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.journal_reader import newest_records
from sinks.kafka.topic_rules import Topic
from sinks.kafka.topics import ensure_topics
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.wire.ownership import Change, Record

pytestmark = pytest.mark.e2e

BUNDLES = tuple(f"t/n/0x{low:08x}_0x{low + 1:08x}" for low in range(20))


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In the journal's place, of four partitions."""
    name = request.node.name.replace("[", "-").replace("]", "")
    ensure_topics(bootstrap, topics=[Topic(name, 4, {"cleanup.policy": "compact"})])
    monkeypatch.setattr(sinks.kafka.journal_reader, "OWNERSHIP", name)
    return str(name)


def change(bundle: str, *epoch: int) -> bytes:
    record = Record(state=State.OWNED, epoch=Epoch(*epoch), owner="a:8080")
    return msgspec.json.encode(Change(cluster="c", bundle=bundle, event=Event.CLAIM, record=record))


def write(bootstrap: str, topic: str, records: Iterable[tuple[int, str, bytes | None]]) -> None:
    """Partition, bundle and value of each."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, bundle, value in records:
        producer.produce(topic, key=f"c/{bundle}".encode(), value=value, partition=partition)
    assert producer.flush(10) == 0


def test_every_partition_is_read(bootstrap: str, topic: str) -> None:
    write(
        bootstrap,
        topic,
        [(row % 4, bundle, change(bundle, 1, 2)) for row, bundle in enumerate(BUNDLES)],
    )
    assert newest_records(bootstrap, "c").keys() == set(BUNDLES)


def test_a_record_that_names_no_owner_where_one_serves_is_not_restored(
    bootstrap: str, topic: str
) -> None:
    poison = change(BUNDLES[0], 1, 9).replace(b',"owner":"a:8080"', b"")
    lines = [(0, BUNDLES[0], change(BUNDLES[0], 1, 2)), (0, BUNDLES[0], poison)]
    write(bootstrap, topic, lines)
    found = newest_records(bootstrap, "c")
    assert found[BUNDLES[0]].epoch == Epoch(1, 2)


def test_the_end_of_a_partition_is_not_waited_for(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is closed meanwhile. A reader that waits here waits longer than a test may take."""
    monkeypatch.setattr(sinks.kafka.journal_reader, "TIMEOUT_SECONDS", 3600.0)
    write(bootstrap, topic, [(row, BUNDLES[row], change(BUNDLES[row], 1, 1)) for row in range(4)])
    assert len(newest_records(bootstrap, "c")) == 4


@pytest.mark.parametrize("later", [0, 3])
def test_of_two_partitions_that_have_a_bundle_the_higher_epoch_holds(
    bootstrap: str, topic: str, later: int
) -> None:
    """A topic that was widened keeps a bundle's older records where they were."""
    [bundle, other, *_] = BUNDLES
    lines = [(later, bundle, change(bundle, 2, 1)), (3 - later, bundle, change(bundle, 1, 9))]
    write(bootstrap, topic, [*lines, (1, other, change(other, 1, 1)), (2, other, None)])
    found = newest_records(bootstrap, "c")
    assert {name: record.epoch for name, record in found.items()} == {
        bundle: (2, 1),
        other: (1, 1),
    }


def test_what_a_paused_job_sends_late_does_not_hide_what_came_meanwhile(
    bootstrap: str, topic: str
) -> None:
    [bundle, *_] = BUNDLES
    write(bootstrap, topic, [(0, bundle, change(bundle, *epoch)) for epoch in ((2, 7), (1, 6))])
    assert newest_records(bootstrap, "c")[bundle].epoch == Epoch(2, 7)


def test_a_record_beyond_belief_hides_no_other(bootstrap: str, topic: str) -> None:
    [bundle, other, *_] = BUNDLES
    forged = 9_000_000_000_000_000
    lines = [(0, bundle, change(bundle, *epoch)) for epoch in ((1, 5), (forged, 1), (1, 4))]
    write(bootstrap, topic, [*lines, (0, other, change(other, forged, 1))])
    found = newest_records(bootstrap, "c", generation=3)
    assert (found[bundle].epoch, found[other].epoch) == ((1, 5), (forged, 1))


def test_a_missing_topic_is_not_read_as_an_empty_journal(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks.kafka.journal_reader, "OWNERSHIP", "nowhere")
    with pytest.raises((KafkaUnavailable, Misconfigured), match="nowhere"):
        newest_records(bootstrap, "c")


def test_a_topic_that_must_have_an_order_is_not_read_in_part(bootstrap: str, topic: str) -> None:
    topics = RecordedTopics(bootstrap)
    with pytest.raises(Misconfigured, match="4 partitions"):
        topics.whole(topic)
    topics.close()
