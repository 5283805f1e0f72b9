"""A checkpoint is judged before the job claims: by files as Spark writes them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

import pytest
from pyspark.sql import SparkSession

from streaming.config import JobConfig, KafkaConfig
from streaming.query import spark_checks
from streaming.query.broker_operator import SNAPSHOTS
from streaming.query.checkpoint import Watermarks, check_origin, check_writable
from streaming.query.spark_checks import check_checkpoint
from streaming.readiness import NotReady
from tests.support.on_disk import OnDisk, write
from trimtab.wire import keys

REPORTS, INTENTS, CHANGES = keys.LOAD_REPORTS, keys.CONTROL, keys.OWNERSHIP
SOURCES: Final = ({REPORTS: {"0": 5, "1": 0}}, {INTENTS: {"0": 7}}, {CHANGES: {"0": 40}})
THERE: Final = {
    (REPORTS, 0): (0, 9),
    (REPORTS, 1): (0, 0),
    (INTENTS, 0): (0, 7),
    (CHANGES, 0): (0, 41),
}


def offsets(folder: Path, number: int, *sources: object, partitions: str = "2") -> None:
    conf = {"batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": partitions}}
    lines = ["v1", json.dumps(conf), *map(json.dumps, sources)]
    write(folder / f"offsets/{number}", "\n".join(lines))


def operator(
    folder: Path,
    number: int,
    name: str = "transformWithStateInPySparkExec",
    variable: str = SNAPSHOTS,
) -> None:
    told = {
        "operatorInfo": {"operatorId": number, "operatorName": name},
        "stateStoreInfo": [{"storeName": "default", "numPartitions": 2}],
        "operatorPropertiesJson": json.dumps({"stateVariables": [{"stateName": variable}]}),
    }
    write(folder / f"state/{number}/_metadata/v2/0", f"v2\n{json.dumps(told)}")


def test_where_a_query_is_to_begin_is_no_query_yet(tmp_path: Path) -> None:
    write(tmp_path / "sources/0/0", '\0v1\n{"trimtab.load-reports": {"0": 3}}')
    check_origin(OnDisk(tmp_path), lambda: pytest.fail("a new query reads what there is"))


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Batch 3 is committed, and 4 has begun."""
    write(tmp_path / "metadata", '{"id":"423a1055"}')
    offsets(tmp_path, 3, {REPORTS: {"0": 2, "1": 0}}, {INTENTS: {"0": 7}}, {CHANGES: {"0": 38}})
    offsets(tmp_path, 4, *SOURCES)
    write(tmp_path / "commits/3", 'v1\n{"nextBatchWatermarkMs":0}')
    for number in range(2):
        operator(tmp_path, number)
    return tmp_path


def test_one_of_this_job_is_gone_on_from(ours: Path) -> None:
    check_origin(OnDisk(ours), lambda: THERE)


@pytest.mark.parametrize("begun", [False, True], ids=["nothing", "a query without a batch"])
def test_a_new_one_is_begun(tmp_path: Path, begun: bool) -> None:
    if begun:
        write(tmp_path / "metadata", '{"id":"423a1055"}')
    check_origin(OnDisk(tmp_path), lambda: {})


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(
            lambda at: offsets(at, 4, SOURCES[0], SOURCES[1]),
            "reads trimtab.load-reports, trimtab.control from 2 sources",
            id="fewer sources",
        ),
        pytest.param(
            lambda at: offsets(at, 4, {"clicks": {"0": 1}}, SOURCES[1], SOURCES[2]),
            "reads clicks, ",
            id="other topics",
        ),
        pytest.param(
            lambda at: offsets(at, 4, {"logOffset": 3}), "reads logOffset from 1 ", id="of files"
        ),
        pytest.param(lambda at: operator(at, 1, "dedupe"), "operator 1 is dedupe", id="dedupe"),
        pytest.param(
            lambda at: operator(at, 1, variable="snapshot"),
            f"has no {SNAPSHOTS}: another version of trimtab wrote it",
            id="a key for each broker",
        ),
        pytest.param(
            lambda at: operator(at, 1, variable="snapshots_in_16_shards"),
            f"has no {SNAPSHOTS}: another version of trimtab wrote it",
            id="shards of each cluster",
        ),
        pytest.param(lambda at: operator(at, 2), "3 operators with state", id="more operators"),
        pytest.param(
            lambda at: offsets(at, 4, *SOURCES, partitions="8"),
            "operator 0 has 2 partitions, its offsets are of 8",
            id="another number of partitions",
        ),
        pytest.param(lambda at: write(at / "metadata", "\0\0"), "metadata cannot", id="metadata"),
        pytest.param(lambda at: (at / "metadata").unlink(), "metadata", id="no metadata"),
        pytest.param(lambda at: write(at / "offsets/4", ""), "offsets/4 is not whole", id="empty"),
        pytest.param(
            lambda at: write(at / "offsets/4", "v1\n{}\n{{{"), "offsets/4 cannot be read", id="bits"
        ),
        pytest.param(lambda at: write(at / "commits/3", "v1\n"), "commits/3 cannot", id="commit"),
    ],
)
def test_one_that_spark_could_not_go_on_from_is_refused(
    ours: Path, harm: Callable[[Path], object], said: str
) -> None:
    harm(ours)
    with pytest.raises(NotReady, match=said) as refused:
        check_origin(OnDisk(ours), lambda: THERE)
    assert f"the checkpoint {ours} " in str(refused.value)
    assert "a job without one starts over" in str(refused.value)


@pytest.mark.parametrize(
    ("place", "reach", "said"),
    [
        pytest.param((CHANGES, 0), (0, 39), "up to 40, which ends at 39 now", id="made again"),
        pytest.param((CHANGES, 0), (41, 41), "up to 40, which begins at 41 now", id="retention"),
        pytest.param((REPORTS, 0), (3, 9), "up to 2, which begins at 3 now", id="to be done again"),
        pytest.param((REPORTS, 1), None, "there is no trimtab.load-reports/1", id="gone"),
    ],
)
def test_one_that_kafka_has_left_behind_is_refused(
    ours: Path, place: tuple[str, int], reach: tuple[int, int] | None, said: str
) -> None:
    there = {each: reaches for each, reaches in THERE.items() if each != place}
    if reach is not None:
        there[place] = reach
    with pytest.raises(NotReady, match=said):
        check_origin(OnDisk(ours), lambda: there)
    # As the operator has told Spark.
    check_origin(OnDisk(ours), None)


def test_one_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotReady, match=f"{file} cannot be written: Not a directory; make room"):
        check_writable(OnDisk(file))


class Kafka:
    """Has the topics up to where ``THERE`` says, and keeps who asked."""

    def __init__(self) -> None:
        self.there: Watermarks = THERE
        self.asked: list[tuple[str, str | None]] = []

    def watermarks(
        self, bootstrap: str, topics: Iterable[str], client: Mapping[str, str]
    ) -> Watermarks:
        assert set(topics) == {REPORTS, INTENTS, CHANGES}
        self.asked.append((bootstrap, client.get("client.id")))
        return self.there


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Of a job that sees its checkpoint without Spark."""
    stands = Kafka()
    monkeypatch.setattr(spark_checks, "Folder", lambda _, path: OnDisk(Path(path)))
    monkeypatch.setattr(spark_checks, "watermarks", stands.watermarks)
    return stands


def check(place: Path, **options: str) -> None:
    kafka = KafkaConfig(bootstrap="kafka:1", options=options, client={"client.id": "job"})
    check_checkpoint(cast("SparkSession", None), JobConfig(kafka=kafka, checkpoint=str(place)))


def test_a_job_asks_kafka_as_its_other_clients_do(ours: Path, kafka: Kafka) -> None:
    check(ours)
    assert kafka.asked == [("kafka:1", "job")]


def test_a_job_does_not_start_on_a_checkpoint_that_cannot_be_written(
    tmp_path: Path, kafka: Kafka
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotReady, match="cannot be written"):
        check(tmp_path / "file")
    assert not kafka.asked


def test_a_job_starts_on_lost_records_only_where_it_is_told_to(ours: Path, kafka: Kafka) -> None:
    kafka.there = {**THERE, (CHANGES, 0): (41, 41)}
    for options in ({}, {"failOnDataLoss": "true"}):
        with pytest.raises(NotReady, match="which begins at 41 now"):
            check(ours, **options)
    # Spark takes it in any case of letters.
    for told in ("false", "False"):
        check(ours, failOnDataLoss=told)
