"""The operators do what the engine-free functions do, and refuse another schema's state."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.tws_tester import TwsTester

from sources.arrivals import Stored, take_reports
from sources.records import Record, report_of, row_of
from sources.shards import parcel_up, shard_of
from sources.topics import select_rows
from streaming.query import memory_store
from streaming.query.broker_operator import SNAPSHOTS, BrokerOperator
from streaming.query.cluster_operator import ClusterOperator
from streaming.query.memory_store import MemoryStore
from streaming.query.rows import spark_row
from streaming.query.state import SCHEMA, ForeignCheckpoint
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.settings import Settings
from trimtab.state import packed_pages
from trimtab.state.memory import Memory, put_together
from trimtab.state.packed_pages import LATEST, NAMESPACES, PackedPages
from trimtab.wire import keys
from trimtab.wire.columns import pack, unpack
from trimtab.wire.ownership import Change
from trimtab.wire.ownership import Record as Owned
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rows import Row, Tag

SUBJECT, OTHER = ("c", "b:1"), ("d", "b:1")
"""Both belong to one shard."""
SHARD = shard_of("c/b:1")
INTAKE = IntakeSettings(sample_interval=1.0)
SELDOM = IntakeSettings(sample_interval=60.0)
"""Of a broker's reports in these tests only the first is a sample."""
OWNED = Owned(state=State.OWNED, epoch=Epoch(1, 1), owner="b:1")
KAFKA = (
    "topic string, partition int, offset bigint, at bigint, key binary, value binary, "
    "headers array<struct<key string, value binary>>"
)


@pytest.fixture(autouse=True)
def worker_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a worker of Spark would have."""
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    return tmp_path


def spoil(worker_files: Path, copies: str) -> None:
    """What happens between two batches to the copies that a worker keeps of its pages."""
    kept = [each for each in worker_files.rglob("*") if each.is_file()]
    assert kept or copies == "lost"
    for each in kept:
        if copies == "lost":
            each.unlink()
        if copies == "damaged":
            each.write_bytes(b"damaged")


def said(cpu: float, broker: int = 0) -> bytes:
    mine = [bundle(2 * broker), bundle(2 * broker + 1)]
    stats = {name: BundleStats(msg_rate_in=10.0 * cpu, topics=1) for name in mine}
    return encode(LocalBrokerData(cpu=Resource(cpu, 100.0), last_stats=stats, bundles=mine))


def record(offset: int, value: bytes | None, key: bytes | None = b"c/b:1") -> Record:
    return Record(keys.LOAD_REPORTS, 0, offset, 1000 * offset, key, value)


BATCHES = (
    [record(2, said(30.0)), record(1, said(20.0)), record(3, b"{")],
    [record(2, said(99.0)), record(4, said(40.0)), record(5, said(7.0, 1), b"d/b:1")],
    [record(1, said(99.0))],
)
"""A new report, poison, a duplicate, a broker of the same name in another cluster, and an old
report."""


@pytest.mark.parametrize("copies", ["kept", "lost", "damaged"])
@pytest.mark.parametrize("intake", [INTAKE, SELDOM], ids=["all samples", "one sample"])
def test_the_broker_operator_is_take_reports(
    intake: IntakeSettings, copies: str, worker_files: Path
) -> None:
    tester = TwsTester(BrokerOperator(intake), timeMode="ProcessingTime")
    stored = Stored({}, {})
    for batch in BATCHES:
        expected = list[Row]()
        for subject in (SUBJECT, OTHER):
            reports = [report for at, report in map(report_of, batch) if at == subject]
            expected += take_reports(subject, reports, stored, intake, 0).rows
        told = tester.test(SHARD, _parcels(batch))
        assert sorted(told) == sorted(map(spark_row, expected))
        assert _stored_in(tester) == stored
        spoil(worker_files, copies)


@pytest.mark.parametrize("page", [100, memory_store.PAGE], ids=["many pages", "a page"])
@pytest.mark.parametrize("interval", [0.0, 3.0], ids=["a round a batch", "a timer"])
@pytest.mark.parametrize(
    ("intake", "copies"),
    [(INTAKE, "kept"), (SELDOM, "kept"), (SELDOM, "lost"), (SELDOM, "damaged")],
    ids=["all samples", "one sample", "copies lost", "copies damaged"],
)
def test_the_cluster_operator_is_the_cluster(  # noqa: PLR0913 - what varies
    intake: IntakeSettings,
    copies: str,
    interval: float,
    page: int,
    worker_files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_store, "PAGE", page)
    settings = Settings().changed({"round.interval": interval, "round.observe_only": True})
    tester = TwsTester(ClusterOperator(settings), timeMode="ProcessingTime")
    cluster = Cluster("c", {}, {}, Memory(), settings)
    for second, rows in enumerate(_snapshots(intake), 1):
        follow(tester, cluster, rows, 4000 * second)
        assert pack(stored(tester)) == pack(cluster.memory)
        pages = pages_in(tester, "pages", "c")
        assert dict(PackedPages(pages)) == cluster.snapshots
        assert dict(PackedPages(pages, LATEST)) == cluster.latest
        spoil(worker_files, copies)
    assert cluster.memory.round.number >= 2


def follow(tester: TwsTester, cluster: Cluster, rows: Sequence[Row], now_ms: int) -> None:
    """Give both operators a batch, and the timers that are due before it; their answers are the
    same."""
    fired = tester.setProcessingTime(now_ms)
    woken: list[Row] = []
    if 0 < cluster.memory.due_ms <= now_ms:
        woken, _ = cluster.wake(now_ms)
    assert list(fired) == list(map(spark_row, woken))
    out, _ = cluster.take(rows, now_ms)
    assert tester.test("c", list(map(spark_row, rows))) == list(map(spark_row, out))


def stored(tester: TwsTester) -> Memory:
    """The whole memory of the cluster."""

    store = MemoryStore(pages_in(tester, "pages", "c"))
    memory, apart = store.load()
    return put_together(memory, store.recall()) if apart else memory


def pages_in(tester: TwsTester, state: str, key: Any) -> dict[str, bytes]:
    held = tester.peekMapState(state, key).items()
    return {name: a2b_base64(text) for (name,), (_, text) in held}


def test_a_broker_operator_refuses_another_schema() -> None:
    tester = TwsTester(BrokerOperator(INTAKE), timeMode="ProcessingTime")
    tester.updateMapState(SNAPSHOTS, SHARD, {("snapshots",): (99, "")})
    with pytest.raises(ForeignCheckpoint, match=f"state of schema 99, this job of {SCHEMA}"):
        tester.test(SHARD, _parcels(BATCHES[0]))


def test_snapshots_of_brokers_that_report_one_after_the_other_lie_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each has a page to itself, and the pages are numbered as they are written.
    monkeypatch.setattr(packed_pages, "PAGE", 1)
    names = [name for name in (f"c/b:{n}" for n in range(1000)) if shard_of(name) == SHARD][:9]
    late_first = [replace(record(9 - at, said(9.0)), key=n.encode()) for at, n in enumerate(names)]
    tester = TwsTester(BrokerOperator(INTAKE), timeMode="ProcessingTime")
    tester.test(SHARD, _parcels(late_first))
    pages = pages_in(tester, SNAPSHOTS, SHARD)
    found = [next(iter(unpack(pages[f"snapshots/{n}"], dict[str, bytes]))) for n in range(9)]
    assert found == names[::-1]


def test_brokers_that_are_silent_for_a_day_leave_the_state() -> None:
    """The shard's timer is set once a day, and spares those that reported since."""
    tester = TwsTester(BrokerOperator(INTAKE), timeMode="ProcessingTime")
    day = 24 * 3600 * 1000
    mine, others = record(1, said(20.0)), record(1, said(20.0, 1), b"d/b:1")
    tester.test(SHARD, _parcels([replace(mine, at=1000), replace(others, at=1000)]))
    tester.setProcessingTime(day + 5000)
    tester.test(SHARD, _parcels([replace(mine, offset=2, at=day + 5000)]))
    for now_ms, known in ((2 * day - 1, {SUBJECT, OTHER}), (2 * day, {SUBJECT}), (3 * day, set())):
        assert list(tester.setProcessingTime(now_ms)) == []
        names = {"/".join(subject) for subject in known}
        assert [set(part) for part in _stored_in(tester)] == [names, names]


def test_a_broker_whose_bundles_were_taken_a_day_ago_stays_if_it_reported_since() -> None:
    tester = TwsTester(BrokerOperator(SELDOM), timeMode="ProcessingTime")
    day = 24 * 3600 * 1000
    for offset, at in ((1, day - 10_000), (2, day + 5000)):
        tester.test(SHARD, _parcels([replace(record(offset, said(20.0)), at=at)]))
    assert list(tester.setProcessingTime(2 * day)) == []
    assert [set(part) for part in _stored_in(tester)] == [{"c/b:1"}, {"c/b:1"}]


def _parcels(batch: Sequence[Record]) -> list[SparkRow]:
    """The records as the stage before the operator passes them on, one by one."""
    made = (parcel_up([report_of(each)]) for each in batch)
    return [SparkRow("parcel")(parcel) for parcels in made for parcel in parcels.values()]


def _stored_in(tester: TwsTester) -> Stored:
    pages = pages_in(tester, SNAPSHOTS, SHARD)
    return Stored(dict(PackedPages(pages, LATEST)), dict(PackedPages(pages)))


def test_a_cluster_operator_refuses_another_schema() -> None:
    tester = TwsTester(ClusterOperator(Settings()), timeMode="ProcessingTime")
    tester.updateMapState("pages", "c", {("memory",): (99, "")})
    with pytest.raises(ForeignCheckpoint, match=f"state of schema 99, this job of {SCHEMA}"):
        tester.test("c", [spark_row(_snapshots()[0][0])])


def test_records_that_were_kept_by_namespace_move_to_pages() -> None:
    tester = TwsTester(ClusterOperator(Settings()), timeMode="ProcessingTime")
    earlier = {
        f"t/{name}": pack({f"t/{name}/0x00000000_0xffffffff": OWNED}) for name in ("n", "other")
    }
    kept = {(name,): (5, b2a_base64(packed).decode()) for name, packed in earlier.items()}
    tester.updateMapState("namespaces", "c", kept)
    newer = msgspec.structs.replace(OWNED, epoch=Epoch(1, 2), owner="b:2")
    change = Change(
        cluster="c", bundle="t/n/0x00000000_0xffffffff", event=Event.TRANSFER, record=newer
    )
    row = Row("c", Tag.CHANGE, "trimtab.ownership/0/1", msgspec.json.encode(change), 1000)
    tester.test("c", [spark_row(row)])
    pages = PackedPages(pages_in(tester, "pages", "c"), NAMESPACES)
    found = {name: unpack(packed, dict[str, Owned]) for name, packed in pages.items()}
    assert found == {
        "t/n": {"t/n/0x00000000_0xffffffff": newer},
        "t/other": {"t/other/0x00000000_0xffffffff": OWNED},
    }
    assert not tester.peekMapState("namespaces", "c")


def test_spark_reads_an_intent_as_a_replay_does(spark: SparkSession) -> None:
    named = [
        b"c",
        b"c/x",
        b"c/x/y z",
        b"/c",
        b"c d",
        b"c\n",
        b"c/\n",
        b"",
        None,
        b"\xff",
        b"c/\xff",
    ]
    records = [Record(keys.CONTROL, 0, i, i, key, b"{}") for i, key in enumerate(named)]
    rows = select_rows(_kafka(spark, records), Tag.INTENT).collect()
    found = [Row(*row)._replace(payload=bytes(row.payload)) for row in rows]
    assert found == [row_of(each, Tag.INTENT) for each in records]


def _snapshots(intake: IntakeSettings = INTAKE) -> list[list[Row]]:
    """Batches of two brokers' snapshots, as operator ① makes them."""
    stored, batches = Stored({}, {}), []
    for sequence in range(1, 5):
        rows = list[Row]()
        for i, broker in enumerate(("b:0", "b:1")):
            report = report_of(record(sequence, said(20.0 + 40.0 * i, i)))[1]
            rows += take_reports(("c", broker), [report], stored, intake, 0).rows
        batches.append(rows)
    return batches


def _kafka(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    """The records as Spark's Kafka source shows them."""
    rows = [
        (r.topic, r.partition, r.offset, r.at, r.key, r.value, list(r.headers) or None)
        for r in records
    ]
    frame = spark.createDataFrame(rows, KAFKA)
    return frame.withColumn("timestamp", functions.timestamp_millis("at"))
