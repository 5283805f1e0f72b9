"""Explanations are written last, and a batch stands even if they cannot be written."""

from __future__ import annotations

import threading
from typing import Any, Self, cast

import msgspec
import pytest
from pyspark.sql import DataFrame

from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.errors import Fenced
from sinks.exposition import Exposition
from sinks.redis.answers.explanations import Explanations
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query.batch import BatchWriter
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from tests.faults.job import Frame, Offsets
from tests.faults.topics import Claims, Topics
from tests.support.explanations import explanation
from tests.support.opening import let_in
from trimtab.wire import keys
from trimtab.wire.explanation import RoundExplanations
from trimtab.wire.rows import Row, Tag

BROKER = "a:8080"


class Job:
    """Writes one batch after another, of which only explanations are told."""

    def __init__(self, url: str, cluster: str) -> None:
        self.client, self.cluster, self.topics = redis_client(url), cluster, Topics()
        self.shown, self._number = Exposition(), 0
        self.claims = Claims()
        store, leadership = OwnershipStore(self.client), Leadership(self.claims.claim, self.shown)
        opener = StoreOpener(ClusterGate(self.client), store, lambda _: {}, leadership, self.shown)
        retry = SinkRetry(threading.Event(), Progress(), self.shown)
        self.writer = BatchWriter(store, self.topics, opener, Offsets("q"), retry, lambda: None)
        self.kept = self.writer.explanations = Explanations(self.client)

    def tell(self, problem: str = "") -> None:
        told = RoundExplanations(
            cluster=self.cluster,
            round=1,
            at=60_000,
            keep=10,
            subjects={} if problem else {BROKER: explanation(BROKER)},
            problem=problem,
        )
        row = Row(self.cluster, Tag.WHY, "", msgspec.json.encode(told), 0)
        frame: Any = Frame([row])
        self.writer(cast(DataFrame, frame), self._number)
        self._number += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @property
    def unexplained(self) -> float:
        labels = {"cluster": self.cluster}
        name = "trimtab_unexplained_rounds_total"
        return self.shown.registry.get_sample_value(name, labels) or 0.0


def test_what_a_round_tells_can_be_asked_for(redis_server: RedisServer) -> None:
    with Job(redis_server.url, "told") as job:
        let_in(job.client, "told", 1)
        job.tell()
        assert job.kept.read("told", BROKER).explanation == explanation(BROKER)
        assert job.unexplained == 0


def test_no_batch_waits_for_a_redis_that_does_not_take_them() -> None:
    with Job(f"redis://127.0.0.1:{free_port()}/0", "away") as job:
        job.tell()
        job.tell()
        assert job.unexplained == 2
        assert job.topics.end(keys.ROUNDS) == 2


def test_a_round_that_could_not_be_explained_is_counted(redis_server: RedisServer) -> None:
    with Job(redis_server.url, "failed") as job:
        let_in(job.client, "failed", 1)
        job.tell("ZeroDivisionError: division by zero")
        assert job.unexplained == 1
        assert job.kept.read("failed", BROKER).kept == (1, 1)


def test_a_cluster_that_was_never_opened_ends_nothing(redis_server: RedisServer) -> None:
    with Job(redis_server.url, "unopened") as job:
        job.tell()
        assert not job.writer.fenced
        assert job.unexplained == 1


def test_claims_that_kafka_has_lost_end_no_job_here(redis_server: RedisServer) -> None:
    with Job(redis_server.url, "lost") as job:
        let_in(job.client, "lost", 500)
        job.tell()
        assert not job.writer.fenced
        job.tell()
        assert job.unexplained == 1
        assert job.kept.read("lost", BROKER).explanation == explanation(BROKER)


def test_a_job_that_was_taken_over_learns_it_here_too(redis_server: RedisServer) -> None:
    with Job(redis_server.url, "fenced") as job:
        let_in(job.client, "fenced", 2)
        job.claims.claim()
        with pytest.raises(Fenced):
            job.tell()
        assert job.writer.fenced
