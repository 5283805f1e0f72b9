"""A batch is written whatever the store has become since the last one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
import pytest
import redis
from pyspark.sql import DataFrame
from structlog.testing import capture_logs

from sinks.exposition import Exposition
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import OwnershipStore
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query import cluster_attempts
from streaming.query.batch import BatchWriter
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from tests.faults.job import Frame, Offsets
from tests.faults.topics import Claims, Topics
from tests.support.opening import close, evicting, indexed, keep_alive, let_in, server_ms
from tests.support.recorded_batches import held
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.ownership import Record, Transition
from trimtab.wire.planned import PlannedRepair
from trimtab.wire.rows import Intake, Row, Tag, json_row

BUNDLE: Final = "t/n/0x00000000_0xffffffff"
A, B = "a:8080", "b:8080"


class Job:
    """The sinks of a job without operators; it waits for no broker when it opens a cluster."""

    def __init__(self, client: redis.Redis, cluster: str) -> None:
        self.client, self.cluster = client, cluster
        self.store = OwnershipStore(client)
        self.shown = shown = Exposition()
        self._leadership = Leadership(Claims().claim, shown)
        opener = StoreOpener(
            ClusterGate(client), self.store, lambda _: {}, self._leadership, shown, 0
        )
        self.number = 0
        self.suspected: list[tuple[str, frozenset[str]]] = []
        self._writer = BatchWriter(
            self.store,
            Topics(),
            opener,
            Offsets("q"),
            SinkRetry(threading.Event(), Progress(), shown),
            lambda: server_ms(client),
            suspect=lambda cluster, brokers: self.suspected.append((cluster, frozenset(brokers))),
        )

    def write(self, *rows: Row) -> None:
        frame: Any = Frame(list(rows))
        self._writer(cast(DataFrame, frame), self.number)
        self.number += 1

    def hears(self, *others: str) -> None:
        """A batch of reports that leads to nothing."""
        clusters = (*others, self.cluster)
        self.write(*(json_row(c, Tag.INTAKE, Intake(cluster=c, accepted=1)) for c in clusters))

    def gives(self, epoch: tuple[int, int], *others: str) -> None:
        """A batch with a repair of each cluster, the job's last: the bundle to B."""
        repair = PlannedRepair(
            bundle=BUNDLE, event="assign", reason="unowned", epoch=epoch, broker=B
        )
        rounds = {
            cluster: msgspec.structs.replace(held(cluster), repairs=(repair,))
            for cluster in (*others, self.cluster)
        }
        self.write(*(json_row(cluster, Tag.ROUND, each) for cluster, each in rounds.items()))

    def left_out(self, cluster: str) -> float:
        """How often it was."""
        name, labels = "trimtab_skipped_clusters_total", {"cluster": cluster}
        return self.shown.registry.get_sample_value(name, labels) or 0.0

    @property
    def is_open(self) -> bool:
        return ClusterGate(self.client).is_open(self.cluster)

    @property
    def record(self) -> Record | None:
        return self.store.record(self.cluster, BUNDLE)


@pytest.fixture
def job(client: redis.Redis, request: pytest.FixtureRequest) -> Job:
    cluster = str(request.node.name)
    keep_alive(client, cluster, (A, B))
    return Job(client, cluster)


def test_whatever_a_batch_brings_the_store_is_open_after_it(job: Job) -> None:
    """A cluster in balance gives the job no other reason to look."""
    job.hears()
    assert job.is_open
    close(job.client, job.cluster)
    job.hears()
    assert job.is_open


def test_a_batch_that_is_run_again_is_counted(job: Job) -> None:
    job.gives((0, 0))
    job.number -= 1
    job.gives((0, 0))
    name, labels = "trimtab_repeated_batches_total", {"cluster": job.cluster}
    assert job.shown.registry.get_sample_value(name, labels) == 1


def test_a_broker_that_reports_and_holds_no_lease_is_looked_at(job: Job) -> None:
    job.client.delete(keys.lease_key(job.cluster, B))
    job.gives((0, 0))
    assert job.record is None
    assert job.suspected == [(job.cluster, frozenset({B}))]
    keep_alive(job.client, job.cluster, (B,))
    job.gives((0, 0))
    assert job.suspected[1:] == [(job.cluster, frozenset())]


def test_a_store_that_has_closed_since_is_opened_for_what_was_decided(job: Job) -> None:
    job.gives((0, 0))
    close(job.client, job.cluster)
    record = job.record
    assert record is not None
    assert (record.owner, record.epoch.generation) == (B, 1)
    job.gives(record.epoch)
    assert job.is_open
    assert job.record is not None
    assert job.record.epoch.generation == 2


def test_what_a_lost_broker_had_is_given_by_a_job_that_knows_the_servers_time(job: Job) -> None:
    let_in(job.client, job.cluster, 1)
    claim = Transition(id="claim", bundle=BUNDLE, event=Event.CLAIM, expect=NO_EPOCH, actor=A)
    record = job.store.apply(job.cluster, claim).record
    assert record is not None
    job.client.delete(keys.lease_key(job.cluster, A))
    job.gives(record.epoch)
    assert job.record is not None
    assert job.record.owner == B


@pytest.mark.parametrize("key", [keys.ownership_key, keys.bundles_key])
def test_deleted_records_are_rebuilt_by_the_next_batch(job: Job, key: Callable[[str], str]) -> None:
    """An index of the wrong type is made again, too."""
    job.gives((0, 0))
    record = job.record
    assert record is not None
    job.client.delete(key(job.cluster))
    assert not job.is_open
    if key is keys.bundles_key:
        job.client.set(key(job.cluster), "text")
    job.hears()
    assert job.is_open
    assert job.record == record
    job.gives(record.epoch)
    assert job.record.epoch.generation == 2
    assert indexed(job.client, job.cluster) == [BUNDLE]


@pytest.mark.parametrize("key", [keys.open_key, keys.ownership_key, keys.journal_key])
def test_a_damaged_cluster_costs_the_others_of_a_batch_nothing(
    job: Job, key: Callable[[str], str]
) -> None:
    other = f"damaged {job.cluster}"
    job.hears(other)
    keep_alive(job.client, other, (A, B))
    job.client.delete(key(other))
    job.client.set(key(other), "text")
    with capture_logs() as told:
        for _ in range(2):
            job.hears(other)
        job.gives((0, 0), other)
        assert job.record is not None
        job.gives(job.record.epoch, other)
    assert job.record.owner == B
    assert job.left_out(other) > 0
    causes = [line["cause"] for line in told if line["event"].startswith("a cluster is not")]
    assert 1 <= len(causes) <= 2
    assert all("delete that key" in cause for cause in causes)


def test_a_server_that_would_delete_keys_is_closed_until_it_would_not(job: Job) -> None:
    job.gives((0, 0))
    record = job.record
    assert record is not None
    with evicting(job.client, "1gb", "volatile-lru"), capture_logs() as told:
        for _ in range(2):
            job.hears()
            job.gives(record.epoch)
        assert not job.is_open
    assert job.record == record
    assert job.left_out(job.cluster) > 0
    causes = [line["cause"] for line in told if line["event"].startswith("a cluster is not")]
    assert 1 <= len(causes) <= 2
    assert all("CONFIG SET maxmemory-policy noeviction" in cause for cause in causes)

    job.gives(record.epoch)
    assert job.record.epoch.generation == 2


def test_a_cluster_that_lacks_its_replicas_delays_the_others_only_once(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts on more replicas than there are: some were taken away, or a broker wrote it."""
    monkeypatch.setattr(cluster_attempts, "ISOLATED_ATTEMPTS", 2)
    other = f"isolated {job.cluster}"
    job.hears(other)
    keep_alive(job.client, other, (A, B))
    job.client.hset(keys.open_key(other), "replicas", 9)
    with capture_logs() as told:
        job.gives((0, 0), other)
    assert job.record is not None
    assert job.record.owner == B
    assert job.left_out(other) == 1
    assert "set redis_replicas" in told[-1]["cause"]
    waits = job.shown.registry.get_sample_value("trimtab_sink_waits_total", {"sink": "redis"})
    job.gives(job.record.epoch, other)
    assert job.left_out(other) == 2
    now = job.shown.registry.get_sample_value("trimtab_sink_waits_total", {"sink": "redis"})
    assert now == waits

    job.client.hset(keys.open_key(other), "replicas", 0)
    job.gives((0, 0), other)
    assert job.store.record(other, BUNDLE) is not None
    assert job.left_out(other) == 2


def test_a_cluster_that_is_opened_once_its_replicas_follow_keeps_no_other_waiting(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_attempts, "ISOLATED_ATTEMPTS", 2)
    other = f"closed {job.cluster}"
    job.hears(other)
    close(job.client, other)
    job.client.hset(keys.open_key(other), "before", 9)
    for heard in (1, 2):
        job.hears(other)
        assert job.is_open
        assert job.left_out(other) >= heard

    job.client.hset(keys.open_key(other), mapping={"before": 0, "replicas": 0})
    job.hears(other)
    assert ClusterGate(job.client).is_open(other)


def test_a_journal_that_takes_no_entry_costs_the_other_clusters_nothing(job: Job) -> None:
    other = f"full {job.cluster}"
    job.hears(other)
    keep_alive(job.client, other, (A, B))
    last = (1 << 64) - 1
    job.client.xadd(keys.journal_key(other), {"change": "x"}, id=f"{last}-{last}")
    job.gives((0, 0), other)
    assert job.record is not None
    assert job.record.owner == B


@pytest.mark.parametrize(
    "record",
    [
        b'{"state":"Owned","epoch":[1,1],"owner":"\xff"}',
        b'{"state":"Lost","epoch":[1,1]}',
        b'{"state":"Owned","epoch":[1,1],"owner":7}',
    ],
)
def test_a_record_that_cannot_be_read_is_refused_and_the_batch_is_written(
    job: Job, record: bytes
) -> None:
    job.hears()
    job.client.hset(keys.ownership_key(job.cluster), BUNDLE, record)
    job.gives((1, 2))
    assert job.client.hget(keys.ownership_key(job.cluster), BUNDLE) == record
