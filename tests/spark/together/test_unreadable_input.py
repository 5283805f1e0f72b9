"""Poison, duplicates and old reports on the real job: each is counted, and harms nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from simulation.replay.batches import Replay
from simulation.replay.recorded import RecordedTopics
from simulation.replay.run import Readers
from tests.spark import corpus
from tests.spark.corpus import Bad, Headers
from tests.spark.together.conftest import Stage
from tests.support.reports import bundle
from tests.support.running import PATIENCE, Running
from tests.support.state import broker_snapshots, cluster_snapshots
from tests.support.stored import joined
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rows import DeadLetter, head_of

CLUSTER = "poisoned"
BROKERS = ("calm:1", "hot:1")
Place = tuple[str, int, int]
"""Topic, partition and offset."""
ORDER = (1, 2, 4, 3, 2, 5, 5, 7, 6)
"""Sequences as they arrive: five are news when each comes in a batch of its own."""


@pytest.fixture
def producer(stage: Stage) -> Producer:
    return Producer({"bootstrap.servers": stage.kafka, "message.max.bytes": 20 << 20})


def test_a_poison_record_changes_nothing_else(
    stage: Stage, spark: SparkSession, producer: Producer
) -> None:
    """The last test of this job: its checkpoint is read, and all its batches run again."""
    running = stage.running
    bad = {
        keys.LOAD_REPORTS: corpus.reports(CLUSTER, said("poisoner:1", 1)),
        keys.CONTROL: corpus.intents(CLUSTER),
        keys.OWNERSHIP: corpus.changes(CLUSTER, bundle(0)),
    }
    others = {place for topic in bad for place in places(running, topic)}
    with capture_logs() as lines:
        raise_the_limit(stage.kafka)
        for i, sequence in enumerate(ORDER):
            for broker in BROKERS:
                send_report(producer, broker, sequence)
            for topic, records in bad.items():
                for one in records[i :: len(ORDER)]:
                    send(producer, topic, one.key, one.value, one.headers)
            producer.flush(30)
        for topic, records in bad.items():
            for reason, number in Counter(one.reason for one in records).items():
                labels = {"topic": topic, "reason": reason}
                running.await_metric(number, "trimtab_dead_letters_total", **labels)
        running.await_metric(3, "trimtab_implausible_reports_total", cluster=CLUSTER, field="cpu")
        send_report(producer, BROKERS[0], 8)
        eventually(lambda: heard(running) == 2 * len(ORDER) + 1, "all good reports", PATIENCE)
        batches = eventually(lambda: running.batches(CLUSTER), "a round", PATIENCE)
        assert running.metric("trimtab_query_restarts_total") == 0
        # Both the others' topics and these: a batch is over once the next batch's record is there.
        end = running.topics.end(keys.ROUNDS)
        eventually(lambda: running.topics.end(keys.ROUNDS) > end + 1, "more batches", PATIENCE)
        running.stop()

    every_poison_is_told_once(running, bad, others)
    doubted = [
        line for line in lines if line["event"] == "a load report is rejected as implausible"
    ]
    assert {"cpu", "msgRateOut", "numTopics"} <= {line["field"] for line in doubted}
    assert {(line["cluster"], line["broker"]) for line in doubted} == {(CLUSTER, "poisoner:1")}
    replay = running.replayed(batches[-1].query)
    expected = joined(clean(running, batches[-1].query).stored)
    assert expected.keys() == {(CLUSTER, broker) for broker in BROKERS}
    for found in (
        joined(replay.stored),
        broker_snapshots(spark, running.config.checkpoint),
        cluster_snapshots(spark, running.config.checkpoint),
    ):
        assert {subject: s for subject, s in found.items() if subject[0] == CLUSTER} == expected
    memory = replay.clusters[CLUSTER].memory
    assert (memory.paused, replay.clusters[CLUSTER].namespaces) == (False, {})


def places(running: Running, topic: str) -> Iterator[Place]:
    return ((topic, record.partition, record.offset) for record in running.topics.all(topic))


def every_poison_is_told_once(
    running: Running, bad: dict[str, list[Bad]], others: Collection[Place]
) -> None:
    """Check each record's reason, place and first bytes; ``others``: records of earlier tests."""
    letters: dict[Place, DeadLetter] = {}
    for record in running.topics.all(keys.DEAD_LETTERS):
        letter = msgspec.json.decode(record.value or b"", type=DeadLetter)
        where = (letter.topic, letter.partition, letter.offset)
        if where not in others:
            assert letters.setdefault(where, letter) == letter
    for topic, expected in bad.items():
        told = [
            (letters[where].reason, record.value or b"", record.key or b"", letters[where])
            for record in running.topics.all(topic)
            if (where := (topic, record.partition, record.offset)) in letters
        ]
        assert sorted((reason, value, key) for reason, value, key, _ in told) == sorted(
            (one.reason, one.value or b"", one.key or b"") for one in expected
        )
        for _, value, key, letter in told:
            assert (letter.size, letter.head) == (len(value), head_of(value))
            if topic == keys.LOAD_REPORTS:
                assert letter.key == key.decode(errors="replace")[:256]


def clean(running: Running, query: str) -> Replay:
    """What the good reports alone make of an empty state, in the same batches."""
    replay = Replay(running.config.intake_settings(), running.config.round_settings())
    subjects = {f"{CLUSTER}/{broker}".encode() for broker in BROKERS}
    with Readers(partial(RecordedTopics, running.config.kafka.bootstrap)) as readers:
        for batch in running.all_batches():
            if batch.query == query:
                read = readers.read_by(batch)
                replay.run(batch.at, [record for record in read if record.key in subjects])
    return replay


def heard(running: Running) -> float:
    return running.metric("trimtab_load_reports_total", cluster=CLUSTER)


def send_report(producer: Producer, broker: str, sequence: int) -> None:
    key = f"{CLUSTER}/{broker}".encode()
    headers = ((keys.SESSION_HEADER, b"1"), (keys.SEQUENCE_HEADER, b"%d" % sequence))
    send(producer, keys.LOAD_REPORTS, key, said(broker, sequence), headers)


def send(
    producer: Producer,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> None:
    said: list[tuple[str, str | bytes | None]] = list(headers)
    producer.produce(topic, key=key, value=value, headers=said)


def said(broker: str, sequence: int) -> bytes:
    """A report whose figures depend on its sequence."""
    hot = 50.0 if broker == BROKERS[1] else 10.0
    mine = [bundle(i) for i in ((0, 1) if broker == BROKERS[1] else (2, 3))]
    stats = {name: BundleStats(msg_rate_in=100.0 * sequence, topics=1) for name in mine}
    return encode(
        LocalBrokerData(
            cpu=Resource(hot + sequence, 100.0), last_stats=stats, bundles=mine, start_timestamp=1
        )
    )


def raise_the_limit(kafka: str) -> None:
    """Raise the topic's limit, as an operator with very large reports might; the job has its own
    limit."""
    entry = ConfigEntry(
        "max.message.bytes", str(20 << 20), incremental_operation=AlterConfigOpType.SET
    )
    topic = ConfigResource(ResourceType.TOPIC, keys.LOAD_REPORTS, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka})
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(10)
