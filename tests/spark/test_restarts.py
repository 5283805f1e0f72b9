"""The query end to end: it decides, and continues from its checkpoint where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import streaming.query.pipeline
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.replay.batches import distinct
from simulation.replay.recorded import RecordedTopics
from simulation.replay.run import Readers
from simulation.replay.span import Asked, Bound
from simulation.replay.verdict import Status, judge_run
from sinks.errors import Closed
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.config import load_config
from streaming.query.broker_operator import BrokerOperator
from streaming.query.spark_checks import check_checkpoint, check_connector
from streaming.query.state import SCHEMA
from streaming.shutdown import FAILED, OK
from tests.support.jobs import QUICK, write_settings
from tests.support.opening import keep_alive, let_in
from tests.support.reports import bundle
from tests.support.running import PATIENCE, Running
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.ownership import Transition
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

CLUSTER = "restarted"
HELD = {"cold:1": [bundle(0, 8)], "hot:1": [bundle(i, 8) for i in range(1, 8)]}
CPU = {"cold:1": 10.0, "hot:1": 80.0}


@pytest.fixture
def running(
    spark: SparkSession, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> Running:
    """A round in every batch that changes a snapshot."""
    settings = {**QUICK, "round.interval": 0.0, "replay.export_interval": 2.0}
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url, settings)
    return Running(load_config(file), spark)


@pytest.mark.slow
def test_it_decides_and_goes_on_where_it_was(
    running: Running, publisher: Publisher, redis_server: RedisServer, spark: SparkSession
) -> None:
    check_connector(spark, running.config)
    check_checkpoint(spark, running.config)
    with redis_client(redis_server.url) as client:
        store = OwnershipStore(client)
        keep_alive(client, CLUSTER, HELD)
        let_in(client, CLUSTER, 1)
        with running:
            report(publisher, 1)
            eventually(lambda: seeded(store), "an open store", PATIENCE, pause=0.2)
            # Reports go on until the records are known: a round needs both.
            sequence = iter(range(2, 10_000))
            eventually(lambda: moved(running, publisher, next(sequence)), "a move", PATIENCE, 0.5)
            last = next(sequence)
            report(publisher, last)
            running.await_metric(
                2 * last, "trimtab_load_reports_total", cluster=CLUSTER, verdict="accepted"
            )
            before = running.batches(CLUSTER)[-1]
            generation = running.metric("trimtab_generation")
        check_checkpoint(spark, running.config)
        with running:
            report(publisher, last)
            running.await_metric(
                2, "trimtab_load_reports_total", cluster=CLUSTER, verdict="duplicate"
            )
            report(publisher, last + 1)
            running.await_metric(
                2, "trimtab_load_reports_total", cluster=CLUSTER, verdict="accepted"
            )
            after = eventually(
                lambda: [b for b in running.batches(CLUSTER) if b.batch > before.batch],
                "a round after the restart",
                PATIENCE,
            )[-1]
            assert running.metric("trimtab_generation") > generation
            running.await_rest_of_journal(client, CLUSTER)
        assert after.query == before.query
        assert after.rounds[0].round > before.rounds[0].round
        running.replayed(after.query)
        assert_nothing_was_done_twice(running.topics, client, CLUSTER)
    assert_same_from_exports(running, after.query)


@pytest.mark.slow
def test_a_checkpoint_of_another_schema_is_refused(
    running: Running,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Defined in here, it is sent to the workers by value; otherwise they would import the real one.
    class Newer(BrokerOperator):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            out = list(super().handleInputRows(key, rows, timerValues))
            self._pages.updateValue(("snapshots",), (99, "from the future"))
            return iter(out)

    with monkeypatch.context() as patched:
        patched.setattr(streaming.query.pipeline, "BrokerOperator", Newer)
        with running:
            report(publisher, 1)
            running.await_metric(1, "trimtab_batches_total")
            running.await_metric(0, "trimtab_input_lag_records")
    with running:
        report(publisher, 2)
        eventually(lambda: running.exit_codes[1:], "the end of the job", PATIENCE, pause=0.2)
    assert running.exit_codes == [OK, FAILED]
    said = capfd.readouterr()
    assert f"the checkpoint holds state of schema 99, this job of {SCHEMA}" in said.out + said.err


def assert_same_from_exports(running: Running, query: str) -> None:
    """What came after the first, and after the last with a round behind it, comes out the same."""
    batches = [each for each in distinct(running.topics.batches()) if each.query == query]
    last = max(each.batch for each in batches if CLUSTER in {r.cluster for r in each.rounds})
    exported = [each.batch for each in batches if CLUSTER in each.exported and each.batch < last]
    for start in (exported[0], exported[-1]):
        asked = Asked(Bound(start + 1, True), Bound(batches[-1].batch, True), query, CLUSTER)
        with Readers(partial(RecordedTopics, running.config.kafka.bootstrap)) as readers:
            verdict = judge_run(readers, asked)
        assert verdict.status is Status.SAME, verdict
        assert verdict.span.starts is not None
        assert verdict.span.starts[CLUSTER].batch == start
        if start == exported[0]:
            assert verdict.issued.commands > 0


def report(publisher: Publisher, sequence: int) -> None:
    headers = ((keys.SESSION_HEADER, b"1"), (keys.SEQUENCE_HEADER, b"%d" % sequence))
    publisher.publish(
        Outgoing(keys.LOAD_REPORTS, f"{CLUSTER}/{broker}", said(broker), headers) for broker in HELD
    )


def said(broker: str) -> bytes:
    stats = {name: BundleStats(msg_rate_in=1000.0, topics=1) for name in HELD[broker]}
    return encode(
        LocalBrokerData(
            cpu=Resource(CPU[broker], 100.0),
            last_stats=stats,
            bundles=HELD[broker],
            msg_rate_in=1000.0 * len(stats),
            start_timestamp=1,
        )
    )


def seeded(store: OwnershipStore) -> bool:
    """Let each broker claim its bundles; returns whether the store granted it."""
    claims = [(broker, name) for broker, held in HELD.items() for name in held]
    try:
        return all(
            store.apply(
                CLUSTER,
                Transition(
                    id=f"claim/{name}",
                    bundle=name,
                    event=Event.CLAIM,
                    expect=NO_EPOCH,
                    broker=broker,
                    actor=broker,
                ),
            ).accepted
            for broker, name in claims
        )
    except Closed:
        return False


def moved(running: Running, publisher: Publisher, sequence: int) -> bool:
    report(publisher, sequence)
    return any(record.moves for batch in running.batches(CLUSTER) for record in batch.rounds)
