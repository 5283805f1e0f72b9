"""A job that cannot work says why, with an exit code of its own, and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from admin import cli
from deploy import jars, service_checks
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.kafka.generation import claim
from sinks.kafka.topics import ensure_topics
from streaming import job
from streaming.shutdown import FAILED, UNREACHABLE, USAGE
from tests.support.jobs import QUICK, run_to_its_end, write_settings
from tests.support.redis_cluster import clustered
from trimtab.wire import keys

pytestmark = pytest.mark.e2e

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _jars() -> None:
    jars.fetch()


class Refused(NamedTuple):
    """A start that failed."""

    code: object
    said: str
    """On the standard error."""
    log: str


Refuse = Callable[[Path], Refused]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Start the job with a file, in this process; returns what it prints before there is a JVM."""

    def start(file: Path) -> Refused:
        with pytest.raises(SystemExit) as ended:
            job.run(file)
        told = capsys.readouterr()
        return Refused(ended.value.code, told.err, told.out)

    return start


def test_every_wrong_setting_is_told_at_once(tmp_path: Path) -> None:
    wrong = {
        **QUICK,
        "round.interval": -1.0,
        "round.shedding": "random",
        "avg.low_hits": 10**30,
        "avg.lowhits": 3,
        "unload.max_share": "half",
    }
    file = write_settings(tmp_path, NOBODY, f"redis://{NOBODY}", wrong)
    text = file.read_text().replace("trigger_seconds = 0.2", "trigger_seconds = -1\ntypo = 1")
    file.write_text(text.replace("sample_interval = 1.0", "half_life = 0.0"))
    ended = run_to_its_end("--config", str(file))
    assert ended.returncode == USAGE, ended.stderr
    for name in (
        "trigger_seconds",
        "typo",
        "intake.half_life",
        "settings.round.interval",
        "settings.round.shedding",
        "settings.avg.low_hits",
        "settings.avg.lowhits",
        "settings.unload.max_share",
    ):
        assert f"  {name}: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kafka = 5", id="a table that is none"),
        pytest.param("intake = 5", id="intake that is no table"),
        pytest.param("settings = []", id="settings that are no table"),
        pytest.param("[settings]\nround = 5", id="a group that is no table"),
        pytest.param("x = [", id="not TOML"),
        pytest.param("trigger_seconds = nan", id="no number"),
    ],
)
def test_a_file_of_another_shape_is_a_wrong_setting(
    tmp_path: Path, text: str, refused: Refuse
) -> None:
    file = tmp_path / "trimtab.toml"
    file.write_text(text)
    assert refused(file).code == USAGE


def test_a_file_that_is_not_there_is_a_wrong_setting(tmp_path: Path, refused: Refuse) -> None:
    ended = refused(tmp_path / "none.toml")
    assert ended.code == USAGE
    assert "none.toml" in ended.said


def test_without_kafka_its_address_is_told(tmp_path: Path, refused: Refuse) -> None:
    file = write_settings(tmp_path, NOBODY, f"redis://{NOBODY}")
    ended = refused(file)
    assert ended.code == UNREACHABLE, ended.said
    assert f"Kafka at {NOBODY}" in ended.said
    assert list(tmp_path.iterdir()) == [file]


def test_without_redis_its_address_is_told_and_no_password(
    kafka: KafkaServer, tmp_path: Path, refused: Refuse
) -> None:
    port = free_port()
    file = write_settings(tmp_path, kafka.bootstrap, f"redis://:hushhush@127.0.0.1:{port}/0")
    ended = refused(file)
    assert ended.code == UNREACHABLE, ended.said
    assert f"Redis at 127.0.0.1:{port}" in ended.said
    assert "hushhush" not in ended.said + ended.log
    assert list(tmp_path.iterdir()) == [file]


def test_a_redis_cluster_is_refused(kafka: KafkaServer, tmp_path: Path, refused: Refuse) -> None:
    with RedisServer(tmp_path / "node", settings=clustered()) as node:
        ended = refused(write_settings(tmp_path, kafka.bootstrap, node.url))
    assert ended.code == FAILED, ended.said
    assert "Redis Cluster is not supported; use a single master" in ended.said


def test_a_replica_is_no_store(kafka: KafkaServer, tmp_path: Path, refused: Refuse) -> None:
    """A supervisor starts the job again, and by then it may have been promoted."""
    with RedisServer(tmp_path / "copy", settings=["replicaof 127.0.0.1 1"]) as copy:
        ended = refused(write_settings(tmp_path, kafka.bootstrap, copy.url))
    assert ended.code == UNREACHABLE, ended.said
    assert "is a replica of 127.0.0.1:1" in ended.said


def a_file_in_its_place(folder: Path) -> None:
    (folder / "checkpoint").touch()


def another_program(folder: Path) -> None:
    checkpoint = folder / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"423a1055-c0f9-498a-9a83-5e965e4cae25"}')
    (checkpoint / "offsets" / "7").write_text('v1\n{"conf":{}}\n{"clicks":{"0":3}}')


def no_connector(folder: Path) -> None:
    file = folder / "trimtab.toml"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if not line.startswith("jars")))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(another_program, "a query that reads clicks from 1", id="another's"),
        # What Spark says about these is tested in tests/spark, on a running session.
        pytest.param(
            a_file_in_its_place,
            "cannot be written: ",
            id="not to be written",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            no_connector,
            "Failed to find data source: kafka",
            id="no connector",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_job_that_cannot_work_does_not_end_the_one_that_works(
    kafka: KafkaServer,
    redis_server: RedisServer,
    tmp_path: Path,
    harm: Callable[[Path], None],
    said: str,
) -> None:
    ensure_topics(kafka.bootstrap)
    healthy = claim(kafka.bootstrap, "trimtab-job")
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url)
    harm(tmp_path)

    ended = run_to_its_end("--config", str(file), seconds=280.0)

    assert ended.returncode == FAILED, ended.stderr
    told = [line for line in ended.stderr.splitlines() if "nothing was started" in line]
    assert len(told) == 1, ended.stderr
    assert said in told[0]
    assert not [line for line in ended.stderr.splitlines() if line.lstrip().startswith("at ")]
    assert "Traceback" not in ended.stderr
    healthy.assert_held()
    healthy.close()


UNSAFE: Final = {
    keys.OWNERSHIP: (1, {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}),
    keys.GENERATIONS: (2, {"cleanup.policy": "compact"}),
}
"""Topics by which two brokers might own a bundle: their partitions and their settings."""


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("unsafe")) as own:
        admin = AdminClient({"bootstrap.servers": own.bootstrap})
        topics = [NewTopic(name, number, config=said) for name, (number, said) in UNSAFE.items()]
        for made in admin.create_topics(topics).values():
            made.result()
        yield own


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            "trimtab.ownership: cleanup.policy is delete, must be compact; type: kafka-configs.sh",
            id="ownership that is deleted by time",
        ),
        pytest.param(
            "trimtab.generations: partitions is 2, must be 1; type: kafka-topics.sh",
            id="claims on two partitions",
        ),
    ],
)
def test_topics_by_which_two_brokers_might_own_a_bundle_refuse_the_start(
    tmp_path: Path, unsafe: KafkaServer, said: str, refused: Refuse
) -> None:
    file = write_settings(tmp_path, unsafe.bootstrap, f"redis://{NOBODY}")
    ended = refused(file)
    examined = [*service_checks.check_kafka(unsafe.bootstrap)]
    listed = CliRunner().invoke(
        cli.build_app(["kafka"]), ["kafka", "create-topics", "--config", str(file)]
    )
    assert ended.code == FAILED, ended.said
    assert said in ended.said
    finding, _, command = said.partition("; type: ")
    told = {each.detail: each.next_command for each in examined if not each.ok}
    assert told[finding].startswith(command)
    assert listed.exit_code == 6
    assert f"{finding}; the job does not start\n  {command}" in listed.stdout
    assert "nothing was started" in ended.said
